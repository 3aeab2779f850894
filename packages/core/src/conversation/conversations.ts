import { readInput } from '../run/history/given-messages.ts';
import type { Message, RunInput } from '../run/history/message.ts';
import { systemWorld, type World, worldRule } from '../stop/clock.ts';
import { createHookDispatcher } from '../stop/hooks.ts';
import {
  callback,
  count,
  having,
  hooks,
  nonEmptyText,
  oneOf,
  pauseMs,
  type Rule,
  type Rules,
  readSettings,
  required,
} from '../stop/settings.ts';
import type { GivenReason } from '../stop/token/reason.ts';
import type { CancelOptions, CancelReceipt } from '../stop/token/receipt.ts';
import { SOURCE_RULES } from '../stop/token/source.ts';
import {
  Conversation,
  type ConversationEvent,
  type ConversationParts,
  type MessageOptions,
  type Reply,
} from './conversation.ts';

export interface ConversationsOptions extends ConversationParts {
  /** Called only with replies to send: not for messages that were superseded, merged or redelivered. */
  readonly onReply?: (reply: Reply) => unknown;
  /**
   * Above this number, the conversation that has been idle longest is forgotten. One with an unanswered message never
   * is.
   */
  readonly maxConversations?: number;
  readonly world?: World;
}

/** Conversations in this process. Each has at most one active run. */
export interface Conversations extends AsyncDisposable {
  /** Resolves with the reply. Never rejects because of a cancel. */
  processMessage(id: string, message: RunInput, options?: MessageOptions): Promise<Reply>;
  /**
   * Stops the active run and drops the waiting messages. A second cancel may stop harder. `too-late`: there was nothing
   * to stop.
   */
  cancel(id: string, reason?: GivenReason, options?: CancelOptions): CancelReceipt;
  history(id: string): readonly Message[];
  forget(id: string): void;
}

const MAX_CONVERSATIONS = 10_000;

/** The statuses whose replies are sent. */
const SENT: ReadonlySet<Reply['status']> = new Set(['answered', 'failed', 'cancelled', 'rejected']);

/** The rule for a policy. */
export const POLICY_RULE: Rule = /*#__PURE__*/ oneOf('replace', 'queue', 'steer', 'reject');

const CONVERSATIONS_RULES: Rules<ConversationsOptions> = {
  agent: required(having('an agent', 'run')),
  policy: POLICY_RULE,
  onReply: callback,
  describeCancel: callback,
  hooks,
  maxConversations: count({ orInfinity: true }),
  world: worldRule,
};

/** The rules for the settings of one message, in memory and on a store. */
export const MESSAGE_RULES: Rules<MessageOptions> = {
  policy: POLICY_RULE,
  messageId: nonEmptyText,
  debounceMs: pauseMs,
  onEvent: callback,
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
  const options = readSettings<ConversationsOptions>(given, CONVERSATIONS_RULES);
  const { maxConversations = MAX_CONVERSATIONS, world = systemWorld } = options;
  const conversations = new Map<string, Conversation>();
  let isClosed = false;
  const tell = createHookDispatcher<ConversationEvent>(options.hooks, {
    'message-answer': ({ reply }) => (SENT.has(reply.status) ? options.onReply?.(reply) : undefined),
  });
  const create = (id: string): Conversation =>
    new Conversation(id, { ...options, world, tell, isClosed: () => isClosed });

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
      const conversationId = nonEmptyText(id, 'id') as string;
      const input = readInput(message, 'message');
      const asked = readSettings<MessageOptions>(messageOptions, MESSAGE_RULES);
      return get(conversationId).receive(input, asked);
    },
    // Don't remember an unknown conversation just because of a cancel.
    cancel: (id, reason, cancelOptions) => (conversations.get(id) ?? create(id)).cancel(reason, cancelOptions),
    history: (id) => conversations.get(id)?.history ?? [],
    forget(id) {
      if (conversations.get(id)?.isIdle) conversations.delete(id);
    },
    async [Symbol.asyncDispose]() {
      isClosed = true;
      const live = [...conversations.values()].filter((conversation) => !conversation.isIdle);
      for (const conversation of live) conversation.cancel({ kind: 'shutdown' });
      await Promise.all(live.map((conversation) => conversation.settled()));
    },
  };
}
