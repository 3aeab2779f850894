// Expensive bookings wait for the owner. The question is in the store until it is answered, so no instance has to wait with it.
import { createHash } from 'node:crypto';
import { createTaskApprovals, type JournalEvent, type TaskApprovals, type TaskStore } from '@whoa/tasks';
import { getPrice } from './calendar.ts';
import type { Notes } from './notes.ts';

/** A booking that costs more needs a yes of the owner. */
const ASK_ABOVE_EUROS = 200;
/** How long the owner has. After that the guest gets a message that no one answered. */
const ANSWER_MS = 3 * 24 * 3_600_000;
/** The tenant of the bot's conversations. */
const TENANT = 'default';

export function createOwnerApprovals(): TaskApprovals {
  return createTaskApprovals({
    // The task leaves its instance immediately, so the instance may be replaced while the owner sleeps.
    parkAfterMs: 0,
    timeoutMs: ANSWER_MS,
    decide({ tool, input }) {
      const price = tool.name === 'book' ? getPrice((input as { readonly at: string }).at) : 0;
      if (price <= ASK_ABOVE_EUROS) return { decision: 'allow' };
      return { decision: 'ask', why: `it costs ${price} euros` };
    },
  });
}

/** A booking that waits for its owner: what would be booked, not what the guest wrote about it. */
interface WaitingBooking {
  readonly question: string;
  /** What the owner types to name it. */
  readonly code: string;
  readonly owner: string;
  readonly guest: string;
  readonly at: string;
}

/** Lists the bookings that wait, oldest first. */
async function listWaiting(store: TaskStore): Promise<readonly WaitingBooking[]> {
  const waiting: WaitingBooking[] = [];
  let cursor: string | undefined;
  do {
    const page = await store.questions({ tenant: TENANT, ...(cursor !== undefined && { cursor }) });
    for (const { id } of page.questions) {
      const booking = await readBooking(store, id);
      if (booking !== undefined) waiting.push(booking);
    }
    cursor = page.next;
  } while (cursor !== undefined);
  return waiting;
}

/** Reads what would be booked from the journal, where the question is as the bot asked it. */
async function readBooking(store: TaskStore, question: string): Promise<WaitingBooking | undefined> {
  // The id of a question starts with the id of its task.
  const ref = { tenant: TENANT, id: question.slice(0, question.lastIndexOf('.')) };
  const context = (await store.get(ref))?.context;
  if (context === undefined) return undefined;
  const { owner, guest } = context;
  for (let after = 0; ; ) {
    const entries = await store.read(ref, { after });
    for (const { event, position } of entries) {
      after = position;
      const { type, id, question: shown } = event as unknown as AskedEvent;
      if (type !== 'approval-question' || id !== question) continue;
      const [at = ''] = shown.fields.find(({ name }) => name === 'at')?.lines ?? [];
      return { question, code: toCode(question), owner, guest, at };
    }
    if (entries.length === 0) return undefined;
  }
}

type AskedEvent = Extract<JournalEvent, { readonly type: 'approval-question' }>;

/** Letters and digits that look different. */
const ALPHABET = '23456789ABCDEFGHJKLMNPQRSTUVWXYZ';

function toCode(question: string): string {
  const bytes = [...createHash('sha256').update(question).digest().subarray(0, 4)];
  return bytes.map((byte) => ALPHABET[byte % ALPHABET.length]).join('');
}

/** A guest chooses their name: in a message to the owner it must not look like ours. */
const toName = (guest: string): string => `“${guest.replace(/[^\p{L}\p{N}+@._ -]/gu, '').slice(0, 40)}”`;

function describeWaiting({ at, guest, code }: WaitingBooking): string {
  return `${at} for ${getPrice(at)} euros, for ${toName(guest)}. Answer “yes ${code}”, or “no ${code}” and why, or reply to this message.`;
}

interface Asking {
  readonly store: TaskStore;
  readonly notes: Notes;
  /** Owners by their numbers. */
  readonly owners: ReadonlyMap<string, string>;
  readonly send: (to: string, text: string) => Promise<string | undefined>;
}

/**
 * Asks the owners of waiting bookings that were not asked yet, even if the instance that had to ask them has crashed. Returns
 * whether each could be asked: one whom the messenger does not reach keeps no other from it.
 */
export async function askAboutBookings(asking: Asking): Promise<boolean> {
  let areAsked = true;
  for (const waiting of await listWaiting(asking.store)) {
    const [number] = [...asking.owners].find(([, owner]) => owner === waiting.owner) ?? [];
    if (number === undefined || !asking.notes.claimQuestion(waiting.question)) continue;
    if (!(await ask(asking, waiting, number))) areAsked = false;
  }
  return areAsked;
}

async function ask({ notes, send }: Asking, waiting: WaitingBooking, number: string): Promise<boolean> {
  const { question, guest, owner } = waiting;
  try {
    notes.noteAsked(question, await send(number, describeWaiting(waiting)));
  } catch (error) {
    console.error(error);
    notes.releaseQuestion(question);
    return false;
  }
  await send(guest, `I have asked ${owner}, and tell you what they say.`).catch(console.error);
  return true;
}

/** An owner's message. */
interface OwnerMessage {
  readonly text: string;
  /** The message that it replies to. */
  readonly replyTo?: string | undefined;
}

const ANSWER = /^\s*(yes|no)\b[\s,.:]*(.*)$/is;

/** Handles an owner's message. A yes counts only for the booking that it names. Returns the reply. */
export async function answerForOwner(
  { store, notes }: { readonly store: TaskStore; readonly notes: Notes },
  owner: string,
  { text, replyTo }: OwnerMessage,
): Promise<string> {
  const waiting = (await listWaiting(store)).filter((booking) => booking.owner === owner);
  const [, word = '', rest = ''] = ANSWER.exec(text) ?? [];
  const repliedTo = replyTo === undefined ? undefined : notes.findAsked(replyTo);
  const code = /^[\dA-Z]{4}\b/i.exec(rest)?.[0].toUpperCase();
  const coded = waiting.filter((booking) => booking.code === code);
  const replied = waiting.filter(({ question }) => question === repliedTo);
  // A reply to one question with the code of another names none.
  const named = repliedTo === undefined ? coded : replied.filter((booking) => !coded.some((one) => one !== booking));
  const [booking] = named;
  if (word === '' || booking === undefined || named.length > 1) return listForOwner(waiting);
  const decision = word.toLowerCase();
  const why = code === booking.code ? rest.slice(code.length).replace(/^[\s,.:]+/, '') : rest;
  const value = why === '' ? { decision } : { decision, why };
  const receipt = await store.answer({ tenant: TENANT, id: booking.question }, { value, by: owner });
  const what = `${booking.at} for ${toName(booking.guest)}`;
  if (receipt.result !== 'accepted') return `${what} was decided before, or is no longer wanted.`;
  return `${what}: ${decision}. They get a message.`;
}

function listForOwner(waiting: readonly WaitingBooking[]): string {
  if (waiting.length === 0) return 'Nothing waits for you.';
  return ['Which one?', ...waiting.map(describeWaiting)].join('\n');
}
