// The bot: an agent with a calendar, and conversations that any instance can continue or stop.
import { type Agent, createAgent } from '@whoa/core';
import type { World } from '@whoa/core/embed';
import type { Model } from '@whoa/core/model';
import {
  createStoreConversations,
  type StoreConversations,
  type StoreReply,
  type TaskRef,
  type TaskStore,
} from '@whoa/tasks';
import { answerForOwner, createOwnerApprovals, describeWaiting } from './approval.ts';
import type { Calendar } from './calendar.ts';
import { createTools } from './tools.ts';

/** A message as the messenger delivers it. */
interface Delivery {
  readonly messageId: string;
  /** The guest. */
  readonly from: string;
  /** The number that was written to: it belongs to one owner. */
  readonly to: string;
  readonly text: string;
}

export interface BotOptions {
  readonly instance: string;
  readonly store: TaskStore;
  readonly model: Model;
  readonly calendar: Calendar;
  /** Owners by the numbers that guests write to. */
  readonly owners: ReadonlyMap<string, string>;
  readonly send: (to: string, text: string) => Promise<void>;
  /** Its clock; tests pass their own. */
  readonly world?: World;
}

export interface Bot extends AsyncDisposable {
  /** Takes a delivery. It is answered later, by `send`. Resolves with whether the number is known. */
  take(delivery: Delivery): boolean;
}

const INSTRUCTIONS = `You book appointments for the owner of a calendar. Find free slots, hold one while the guest decides,
and book it when the guest confirms. An expensive slot needs a yes of the owner: just book it, the owner is asked. Answer in one
sentence.`;

const STOP_WORDS = /^\s*(stop|cancel|forget it)\W*$/i;

export function createBot({ instance, store, model, calendar, owners, send, world }: BotOptions): Bot {
  const tools = createTools(calendar);
  const approvals = createOwnerApprovals();
  const { approve } = approvals;
  const agent: Agent = createAgent({ name: 'booking', model, instructions: INSTRUCTIONS, tools, approve });
  /** A booking waits for its owner, and no instance waits with it. */
  const ask = async (ref: TaskRef): Promise<void> => {
    const { conversation = '', title: text = '' } = (await store.get(ref)) ?? {};
    const [owner = '', guest = ''] = conversation.split(':');
    const [number] = [...owners].find(([, one]) => one === owner) ?? [];
    if (number !== undefined) await send(number, describeWaiting({ guest, text }));
    await send(guest, `I have asked ${owner}, and tell you what they say.`);
  };
  const conversations = createStoreConversations({
    agent,
    store,
    worker: instance,
    leaseMs: 10_000,
    // Not called for messages that a newer one has replaced: the guest gets one answer.
    onReply: (reply) => send(getGuest(reply), reply.text),
    describeCancel,
    approvals,
    hooks: { 'task-end': ({ status, ...ref }) => (status === 'parked' ? ask(ref) : undefined) },
    ...(world && { world }),
  });
  // Takes over the messages of a crashed instance.
  conversations.serve().catch((error: unknown) => console.error(error));
  return {
    take(delivery) {
      const owner = owners.get(delivery.to);
      if (owner === undefined) return false;
      calendar.open(owner);
      const { from, to, text } = delivery;
      // An owner writes to the bot from their own number.
      const taken =
        from === to
          ? answerForOwner(store, owner, text).then((reply) => send(from, reply))
          : process(conversations, delivery, owner);
      taken.catch((error: unknown) => console.error(error));
      return true;
    },
    [Symbol.asyncDispose]: () => conversations[Symbol.asyncDispose](),
  };
}

type Options = Parameters<typeof createStoreConversations>[0];
type Cancelled = Parameters<NonNullable<Options['describeCancel']>>[0];

/** The message to a guest who has stopped the bot: holds were released, bookings stand, and the text so far is kept. */
function describeCancel({ calls, text }: Cancelled): string {
  const has = (tool: string, state: string): boolean =>
    calls.some((call) => call.tool === tool && call.state === state);
  const said = ['Stopped.'];
  if (has('hold', 'finished')) said.push('Nothing is held for you any more.');
  if (has('book', 'finished')) said.push('What was booked stays booked.');
  if (has('book', 'unknown')) said.push('Please ask whether your booking went through.');
  if (text !== '') said.push(`So far: ${text}`);
  return said.join(' ');
}

/** A guest who writes to two owners has two conversations. */
const toConversation = (owner: string, guest: string): string => `${owner}:${guest}`;
const getGuest = ({ conversationId }: StoreReply): string => conversationId.slice(conversationId.indexOf(':') + 1);

async function process(conversations: StoreConversations, delivery: Delivery, owner: string): Promise<void> {
  const { from: guest, text, messageId } = delivery;
  const conversation = toConversation(owner, guest);
  if (STOP_WORDS.test(text)) {
    // Stops the run in any instance, and releases holds. Its reply reports the effects.
    await conversations.cancel(
      conversation,
      { kind: 'user', by: guest, message: text.trim() },
      { mode: 'now', undo: true },
    );
    return;
  }
  await conversations.processMessage(conversation, text, { messageId, policy: 'replace', context: { owner, guest } });
}
