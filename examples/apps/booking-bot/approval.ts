// Expensive bookings wait for the owner. The question is in the store until it is answered, so no instance has to wait with it.
import { createTaskApprovals, type TaskApprovals, type TaskStore } from '@whoa/tasks';
import { getPrice } from './calendar.ts';

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

/** A booking that waits for an owner. */
interface WaitingBooking {
  readonly question: string;
  readonly guest: string;
  /** The guest's message. */
  readonly text: string;
}

/** Finds the booking that waits longest for an owner. */
async function findWaiting(store: TaskStore, owner: string): Promise<WaitingBooking | undefined> {
  let cursor: string | undefined;
  do {
    const page = await store.questions({ tenant: TENANT, ...(cursor !== undefined && { cursor }) });
    for (const { id } of page.questions) {
      // The id of a question starts with the id of its task.
      const task = await store.get({ tenant: TENANT, id: id.slice(0, id.lastIndexOf('.')) });
      const [whose, guest = ''] = task?.conversation?.split(':') ?? [];
      if (whose === owner) return { question: id, guest, text: task?.title ?? '' };
    }
    cursor = page.next;
  } while (cursor !== undefined);
  return undefined;
}

const ANSWER = /^\s*(yes|no)\b[\s,.:]*(.*)$/is;

/** Handles an owner's message. Returns the reply. */
export async function answerForOwner(store: TaskStore, owner: string, text: string): Promise<string> {
  const waiting = await findWaiting(store, owner);
  if (waiting === undefined) return 'Nothing waits for you.';
  const { question, guest } = waiting;
  const [, said = '', why = ''] = ANSWER.exec(text) ?? [];
  if (said === '') return describeWaiting(waiting);
  const decision = said.toLowerCase();
  const value = why === '' ? { decision } : { decision, why };
  const receipt = await store.answer({ tenant: TENANT, id: question }, { value, by: owner });
  return receipt.result === 'accepted' ? `${guest} gets a message.` : 'That was decided before.';
}

export function describeWaiting({ guest, text }: Pick<WaitingBooking, 'guest' | 'text'>): string {
  return `${guest} wrote: ${text}. That is expensive: answer yes, or no and why.`;
}
