import { readInput } from '../run/history/given-messages.ts';
import type { Message, RunInput } from '../run/history/message.ts';
import { contextRule } from '../stop/app-context.ts';
import { systemWorld, type World, worldRule } from '../stop/clock.ts';
import { createHookDispatcher } from '../stop/hooks.ts';
import * as settings from '../stop/settings.ts';
import type { CancelReasonLike } from '../stop/token/reason.ts';
import type { CancelOptions, CancelReceipt } from '../stop/token/receipt.ts';
import { SOURCE_RULES } from '../stop/token/source.ts';
import { Conversation, type ConversationParts, type MessageOptions } from './conversation.ts';
import type { ConversationEvent, Reply } from './events.ts';
import { createReplySender } from './send-replies.ts';

export interface ConversationsOptions extends ConversationParts {
  /** Called only with replies to send, those of one conversation in order; not for superseded or merged messages. */
  readonly onReply?: ((reply: Reply) => unknown) | undefined;
  /** Above this number, the conversation that has been idle longest is forgotten. One that is not idle never is. */
  readonly maxConversations?: number | undefined;
  readonly world?: World | undefined;
}

/** Conversations in this process. Each has at most one active run. */
export interface Conversations extends AsyncDisposable {
  /** Resolves with the reply. Never rejects because of a cancel. */
  processMessage(id: string, message: RunInput, options?: MessageOptions): Promise<Reply>;
  /** Stops the active run and drops the waiting messages. `too-late`: there was nothing to stop. */
  cancel(id: string, reason?: CancelReasonLike, options?: CancelOptions): CancelReceipt;
  /** Returns the messages of a conversation so far. */
  history(id: string): readonly Message[];
  /** Forgets a conversation, unless it has a run. */
  remove(id: string): void;
}

const MAX_CONVERSATIONS = 10_000;

/** The rule for a policy. */
export const POLICY_RULE: settings.Rule = /*#__PURE__*/ settings.oneOf('replace', 'queue', 'merge', 'steer', 'reject');

const CONVERSATIONS_RULES: settings.Rules<ConversationsOptions> = {
  agent: settings.required(settings.having('an agent', 'run')),
  policy: POLICY_RULE,
  onReply: settings.callback,
  describeCancel: settings.callback,
  hooks: settings.hooks,
  maxConversations: settings.count({ orInfinity: true }),
  world: worldRule,
};

/** The rules for the settings of one message, in memory and on a store. */
export const MESSAGE_RULES: settings.Rules<MessageOptions> = {
  policy: POLICY_RULE,
  messageId: settings.nonEmptyText,
  debounceMs: settings.pauseMs,
  context: contextRule,
  onEvent: settings.callback,
  ...SOURCE_RULES,
};

/**
 * Creates conversations in memory: one active run each, and a policy for newer messages.
 *
 * @returns The conversations. They never throw because of a cancel.
 * @throws {@link SettingsError} when an option is not valid.
 *
 * @example
 * ```ts
 * import { createConversations } from '@whoa/core';
 *
 * const conversations = createConversations({ agent, policy: 'replace' });
 * const reply = await conversations.processMessage('chat-1', 'Book a table for two');
 * console.log(reply.status);
 * ```
 */
export function createConversations(given: ConversationsOptions): Conversations {
  const options = settings.readSettings<ConversationsOptions>(given, CONVERSATIONS_RULES);
  const { maxConversations = MAX_CONVERSATIONS, world = systemWorld } = options;
  const conversations = new Map<string, Conversation>();
  let isClosed = false;
  const emit = createHookDispatcher<ConversationEvent>(options.hooks);
  const send = createReplySender<Reply>({ ...options, clock: world.clock });
  const create = (id: string): Conversation =>
    new Conversation(id, { ...options, world, emit, send, isClosed: () => isClosed });

  function get(id: string): Conversation {
    const known = conversations.get(id);
    // Evict before adding the new one: it is idle until it has its first message.
    if (known === undefined && conversations.size >= maxConversations) forgetOldestIdle();
    const conversation = known ?? create(id);
    // Map order is the order of last use.
    conversations.delete(id);
    conversations.set(id, conversation);
    return conversation;
  }

  function forgetOldestIdle(): void {
    for (const [id, conversation] of conversations) {
      if (!conversation.isIdle) continue;
      conversations.delete(id);
      return;
    }
  }

  return {
    // Async, so that invalid settings reject like every other failure of a message.
    processMessage: async (id, message, messageOptions = {}) => {
      const conversationId = settings.nonEmptyText(id, 'id') as string;
      const input = readInput(message, 'message');
      const asked = settings.readSettings<MessageOptions>(messageOptions, MESSAGE_RULES);
      return get(conversationId).receive(input, asked);
    },
    // Don't remember an unknown conversation just because of a cancel.
    cancel: (id, reason, cancelOptions) => (conversations.get(id) ?? create(id)).cancel(reason, cancelOptions),
    history: (id) => conversations.get(id)?.history ?? [],
    remove(id) {
      if (conversations.get(id)?.isIdle) conversations.delete(id);
    },
    async [Symbol.asyncDispose]() {
      isClosed = true;
      const live = [...conversations.values()];
      for (const conversation of live) if (!conversation.isIdle) conversation.cancel({ kind: 'shutdown' });
      await Promise.all(live.map((conversation) => conversation.settled()));
    },
  };
}
