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
  /** Only for replies that should be sent: not for messages that were superseded, merged or redelivered. */
  readonly onReply?: (reply: Reply) => unknown;
  /** Beyond this many, the conversation that has been idle longest is forgotten. One with a message to answer never is. */
  readonly maxConversations?: number;
  readonly world?: World;
}

/** Conversations in this process. One run lives in each at a time. */
export interface Conversations extends AsyncDisposable {
  /** Never throws because of a cancel. */
  processMessage(id: string, message: RunInput, options?: MessageOptions): Promise<Reply>;
  /** Stops the live run and drops what waits; asked again, it may stop harder. `too-late`: there was nothing to stop. */
  cancel(id: string, reason?: GivenReason, options?: CancelOptions): CancelReceipt;
  history(id: string): readonly Message[];
  forget(id: string): void;
}

const MAX_CONVERSATIONS = 10_000;

/** Messages whose senders should hear something. */
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

/** The settings of one message, in memory and on a store. */
export const MESSAGE_RULES: Rules<MessageOptions> = {
  policy: POLICY_RULE,
  messageId: nonEmptyText,
  debounceMs: pauseMs,
  onEvent: callback,
  ...SOURCE_RULES,
};

/**
 * Creates conversations in memory: one live run each, and a policy for what a newer message does to it.
 *
 * @returns The conversations. They never throw because of a cancel.
 * @throws {@link SettingsError} when an option cannot work.
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
    // Make room before the newcomer is in: it is idle until it has its first message.
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
    // Async: what cannot work rejects, as everything else that goes wrong with a message would.
    processMessage: async (id, message, messageOptions = {}) => {
      const conversationId = nonEmptyText(id, 'id') as string;
      const input = readInput(message, 'message');
      const asked = readSettings<MessageOptions>(messageOptions, MESSAGE_RULES);
      return get(conversationId).receive(input, asked);
    },
    // One that is not known is not remembered for the asking.
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
