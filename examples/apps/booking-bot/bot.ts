// The bot: an agent with a calendar, and conversations that any instance can continue or stop.
import { type Agent, CancellationToken, type CancelReasonInit, createAgent } from '@whoa/core';
import type { World } from '@whoa/core/embed';
import type { Model } from '@whoa/core/model';
import { createStoreConversations, type StoreConversations, type StoreReply, type TaskStore } from '@whoa/tasks';
import { answerForOwner, askAboutBookings, createOwnerApprovals } from './approval.ts';
import type { Calendar } from './calendar.ts';
import type { Notes } from './notes.ts';
import { createTools } from './tools.ts';

/** A message as the messenger delivers it. */
interface Delivery {
  readonly messageId: string;
  /** The guest. */
  readonly from: string;
  /** The number that was written to: it belongs to one owner. */
  readonly to: string;
  readonly text: string;
  /** The message that it replies to. */
  readonly replyTo?: string | undefined;
}

export interface BotOptions {
  readonly instance: string;
  readonly store: TaskStore;
  readonly model: Model;
  readonly calendar: Calendar;
  readonly notes: Notes;
  /** Owners by the numbers that guests write to. */
  readonly owners: ReadonlyMap<string, string>;
  /** Sends a message. Resolves with the messenger's id of it, if it has one. */
  readonly send: (to: string, text: string) => Promise<string | undefined>;
  /** Its clock; tests pass their own. */
  readonly world?: World;
}

export interface Bot extends AsyncDisposable {
  /**
   * Takes a delivery, which is answered later, by `send`. Resolves when nothing of it can be lost any more, with whether the
   * number is known: acknowledge it then. Rejects if it was not stored, so that the messenger delivers it again.
   */
  take(delivery: Delivery): Promise<boolean>;
}

const INSTRUCTIONS = `You book appointments for the owner of a calendar. Find free slots, hold one while the guest decides,
and book it when the guest confirms. An expensive slot needs a yes of the owner: just book it, the owner is asked. Answer in one
sentence.`;

/** In the languages of your guests. */
const STOP_WORDS =
  /^(no |please )*(stop|wait|cancel|forget|halt|warte|stopp|vent|arrête|attends|para|espera)( (it|that|stop|wait|now|please))*$/;

/** Whether a guest writes nothing but a stop: whatever the case, the accents, the emojis and the name of the bot after it. */
function isStop(text: string): boolean {
  const words = text
    .normalize('NFKC')
    .toLowerCase()
    .replace(/@\S+/g, '')
    .replace(/\p{Cf}/gu, '');
  return STOP_WORDS.test(words.replace(/[^\p{L}\p{N}]+/gu, ' ').trim());
}

export function createBot(options: BotOptions): Bot {
  const { instance, store, model, calendar, notes, owners, send, world } = options;
  const tools = createTools(calendar);
  const approvals = createOwnerApprovals();
  const { approve } = approvals;
  const agent: Agent = createAgent({ name: 'booking', model, instructions: INSTRUCTIONS, tools, approve });

  let areOwnersAsked = true;
  const askOwners = async (): Promise<void> => {
    areOwnersAsked = await askAboutBookings({ store, notes, owners, send });
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
    hooks: { 'task-left': ({ status }) => (status === 'parked' ? askOwners() : undefined) },
    ...(world && { world }),
  });
  // Takes over the messages of a crashed instance.
  conversations.serve().catch(logError);
  askOwners().catch(logError);

  const intake = createIntake(conversations);

  /** Stops the run in any instance, and releases holds. Its reply reports the effects. */
  async function stop({ from: guest, text, messageId }: Delivery, owner: string): Promise<void> {
    if (notes.isDone(messageId)) return;
    const conversation = toConversation(owner, guest);
    const reason = { kind: 'user', by: guest, message: text.trim() };
    intake.withdraw(conversation, reason);
    const { result } = await conversations.cancel(conversation, reason, { mode: 'now', undo: true });
    // Of two deliveries at the same time one is answered.
    if (!notes.noteDone(messageId)) return;
    if (result === 'not-found' || result === 'too-late') send(guest, 'There was nothing to stop.').catch(logError);
  }

  async function answer(delivery: Delivery, owner: string): Promise<void> {
    if (notes.isDone(delivery.messageId)) return;
    const reply = await answerForOwner({ store, notes }, owner, delivery);
    if (notes.noteDone(delivery.messageId)) send(delivery.from, reply).catch(logError);
  }

  return {
    async take(delivery) {
      const owner = owners.get(delivery.to);
      if (owner === undefined) return false;
      calendar.open(owner);
      // Someone could not be reached before.
      if (!areOwnersAsked) askOwners().catch(logError);
      const { from, to, text } = delivery;
      // An owner writes to the bot from their own number.
      if (from === to) await answer(delivery, owner);
      else if (isStop(text)) await stop(delivery, owner);
      else await intake.receive(delivery, owner);
      return true;
    },
    [Symbol.asyncDispose]: () => conversations[Symbol.asyncDispose](),
  };
}

const logError = (error: unknown): void => console.error(error);

/** Gives messages to the conversations. A stop withdraws those that are not stored yet. */
function createIntake(conversations: StoreConversations) {
  const arriving = new Set<{ readonly conversation: string; readonly token: CancellationToken }>();
  return {
    /** Resolves when the store has the message; the reply comes later. */
    receive({ from: guest, text, messageId }: Delivery, owner: string): Promise<void> {
      const message = { conversation: toConversation(owner, guest), token: new CancellationToken() };
      const { conversation, token } = message;
      arriving.add(message);
      return new Promise((resolve, reject) => {
        const onStored = (): void => {
          arriving.delete(message);
          resolve();
        };
        const context = { owner, guest };
        conversations
          .processMessage(conversation, text, { messageId, context, policy: 'replace', token, onStored })
          .then(onStored, (error: unknown) => {
            arriving.delete(message);
            logError(error);
            reject(error);
          })
          .finally(() => token[Symbol.dispose]());
      });
    },
    withdraw(conversation: string, reason: CancelReasonInit): void {
      for (const message of arriving)
        if (message.conversation === conversation) message.token.cancel(reason, { mode: 'now' });
    },
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
const toConversation = (owner: string, guest: string): string => `${encodeURIComponent(owner)}:${guest}`;
const getGuest = ({ conversationId }: StoreReply): string => conversationId.slice(conversationId.indexOf(':') + 1);
