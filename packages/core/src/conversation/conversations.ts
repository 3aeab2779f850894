import type { Agent } from '../run/agent.ts';
import type { Message, RunInput, UserMessage } from '../run/message.ts';
import { userMessage } from '../run/message.ts';
import type { Outcome } from '../run/outcome.ts';
import type { Run } from '../run/run.ts';
import { systemWorld, type World } from '../stop/clock.ts';
import { createTeller, type Hooks } from '../stop/hooks.ts';
import { presetFrom, type StopLevel } from '../stop/level.ts';
import type { CancelReason, CancelReasonInit } from '../stop/reason.ts';
import { CancellationToken, type CancelOptions } from '../stop/token.ts';
import {
  type ConversationEffect,
  type ConversationInput,
  type ConversationState,
  describeEarly,
  type EarlyStatus,
  NEW_CONVERSATION,
  type Policy,
  transition,
} from './policy.ts';

/** What became of one message. */
export interface Reply {
  readonly conversationId: string;
  readonly messageId: string;
  readonly status: 'answered' | 'failed' | EarlyStatus;
  /** Words for the person; on a cancel, what was done so far. */
  readonly text: string;
  /** The run that answered, if one did. */
  readonly outcome?: Outcome;
}

export type ConversationEvent = { readonly at: number; readonly conversationId: string } & (
  | { readonly type: 'message-receive'; readonly messageId: string; readonly policy: Policy }
  | { readonly type: 'message-answer'; readonly reply: Reply }
);

export interface MessageOptions {
  /** What this message does to a run under way; `replace` unless said otherwise. */
  readonly policy?: Policy;
  /** The sender's own id: a message that is delivered twice is processed once. */
  readonly messageId?: string;
  /** Wait this long for more messages and take them as one. */
  readonly debounceMs?: number;
  /** Withdraws this message, and stops the run that answers it. */
  readonly token?: CancellationToken;
  readonly signal?: AbortSignal;
}

export interface ConversationsOptions {
  readonly agent: Agent;
  readonly policy?: Policy;
  /** Only for replies that should be sent: not for messages that were superseded, merged or redelivered. */
  readonly onReply?: (reply: Reply) => unknown;
  /** What to say when a run was cancelled. */
  readonly describeCancel?: (outcome: Outcome & { status: 'cancelled' }) => string;
  readonly hooks?: Hooks<ConversationEvent>;
  /** The longest-idle conversations are forgotten beyond this many. */
  readonly conversationsMax?: number;
  readonly world?: World;
}

/** Conversations in this process. One run lives in each at a time. */
export interface Conversations extends AsyncDisposable {
  /** Never throws because of a cancel. */
  processMessage(id: string, message: RunInput, options?: MessageOptions): Promise<Reply>;
  /** Stops the live run and drops what waits; asked again, it may stop harder. Answers whether there was anything to stop. */
  cancel(id: string, reason?: CancelReasonInit, options?: CancelOptions): boolean;
  history(id: string): readonly Message[];
  forget(id: string): void;
}

const CONVERSATIONS_MAX = 10_000;

/** Messages whose senders should hear something. */
const SENT: ReadonlySet<Reply['status']> = new Set(['answered', 'failed', 'cancelled', 'rejected']);

/** Creates conversations in memory. */
export function createConversations(options: ConversationsOptions): Conversations {
  const { conversationsMax = CONVERSATIONS_MAX, world = systemWorld } = options;
  const conversations = new Map<string, Conversation>();
  const root = new CancellationToken({ name: 'conversations', clock: world.clock });
  const tell = createTeller<ConversationEvent>(options.hooks, {
    'message-answer': ({ reply }) => (SENT.has(reply.status) ? options.onReply?.(reply) : undefined),
  });

  function get(id: string): Conversation {
    const conversation = conversations.get(id) ?? new Conversation(id, { ...options, world, root, tell });
    // Map order is the order of last use.
    conversations.delete(id);
    conversations.set(id, conversation);
    if (conversations.size > conversationsMax) forgetOldestIdle();
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
    processMessage: (id, message, messageOptions = {}) => get(id).receive(userMessage(message), messageOptions),
    cancel: (id, reason, cancelOptions) => conversations.get(id)?.cancel({ reason, options: cancelOptions }) ?? false,
    history: (id) => conversations.get(id)?.history ?? [],
    forget(id) {
      if (conversations.get(id)?.isIdle) conversations.delete(id);
    },
    async [Symbol.asyncDispose]() {
      root.cancel({ kind: 'shutdown' });
      await Promise.all([...conversations.values()].map((conversation) => conversation.settled()));
      root[Symbol.dispose]();
    },
  };
}

interface ConversationSetup extends ConversationsOptions {
  readonly world: World;
  readonly root: CancellationToken;
  readonly tell: (event: ConversationEvent) => void;
}

/** How somebody wants the live run to stop. */
interface StopWish {
  readonly reason?: CancelReasonInit | undefined;
  readonly options?: CancelOptions | undefined;
}

const SUPERSEDED: CancelReasonInit = { kind: 'superseded', message: 'a newer message arrived' };

interface Pending {
  readonly message: UserMessage;
  readonly resolve: (reply: Reply) => void;
  readonly token: CancellationToken;
}

/** One conversation: carries out what the policy decides. */
class Conversation {
  readonly #id: string;
  readonly #setup: ConversationSetup;
  readonly #pending = new Map<string, Pending>();
  #state: ConversationState = NEW_CONVERSATION;
  #history: readonly Message[] = [];
  #run: Run | undefined;
  #asked: StopWish = {};
  #gatherTimer: Disposable | undefined;
  #live: Promise<void> = Promise.resolve();

  constructor(id: string, setup: ConversationSetup) {
    this.#id = id;
    this.#setup = setup;
  }

  get history(): readonly Message[] {
    return this.#history;
  }

  get isIdle(): boolean {
    return this.#pending.size === 0;
  }

  receive(message: UserMessage, options: MessageOptions): Promise<Reply> {
    const { world, tell } = this.#setup;
    const id = options.messageId ?? world.createId();
    const policy = options.policy ?? this.#setup.policy ?? 'replace';
    tell({ type: 'message-receive', at: world.clock.now(), conversationId: this.#id, messageId: id, policy });
    if (this.#state.seen.includes(id)) return Promise.resolve(this.#early(id, 'duplicate'));
    return new Promise((resolve) => {
      const token = this.#tokenOf(id, options);
      this.#pending.set(id, { message, resolve, token });
      // Withdrawn before it came: it must not even supersede what runs.
      if (token.isCancelled) return this.#resolve(this.#early(id, 'cancelled'));
      token.onCancel((level, reason) => this.#withdraw(id, level, reason));
      this.#apply({ type: 'message', id, policy, debounceMs: options.debounceMs ?? 0 });
    });
  }

  cancel(asked: StopWish): boolean {
    if (this.isIdle) return false;
    this.#asked = asked;
    this.#apply({ type: 'cancel' });
    return true;
  }

  async settled(): Promise<void> {
    this.#apply({ type: 'cancel' });
    await this.#live;
  }

  /** A token or signal given with a message withdraws that message, and nothing else. */
  #tokenOf(id: string, { token: parent, signal }: MessageOptions): CancellationToken {
    const options = { parent, name: `message ${id}`, clock: this.#setup.world.clock };
    return signal ? CancellationToken.from(signal, options) : new CancellationToken(options);
  }

  #withdraw(id: string, level: StopLevel, reason: CancelReason): void {
    // As hard as the message was withdrawn; how long a drain may take is the agent's to say.
    this.#asked = { reason, ...(level !== 'drain' && { options: { how: presetFrom(level) } }) };
    this.#apply({ type: 'withdraw', id });
  }

  #apply(input: ConversationInput): void {
    const { state, effects } = transition(this.#state, input);
    this.#state = state;
    if (state.gathering === undefined) this.#gatherTimer?.[Symbol.dispose]();
    for (const effect of effects) this.#perform(effect);
  }

  #perform(effect: ConversationEffect): void {
    switch (effect.type) {
      case 'start':
        this.#live = this.#answer(effect.ids);
        break;
      case 'stop':
        if (effect.kind === 'superseded') this.#run?.cancel(SUPERSEDED);
        else this.#run?.cancel(this.#asked.reason, this.#asked.options);
        break;
      case 'steer':
        this.#run?.steer(this.#pending.get(effect.id)!.message);
        break;
      case 'gather':
        this.#gatherTimer?.[Symbol.dispose]();
        this.#gatherTimer = this.#setup.world.clock.setTimer(effect.ms, () => this.#apply({ type: 'gathered' }));
        break;
      case 'answer':
        this.#resolve(this.#early(effect.id, effect.status));
        break;
    }
  }

  /** Runs the agent for a batch of messages; the last one gets the reply. */
  async #answer(ids: readonly string[]): Promise<void> {
    const { agent, root } = this.#setup;
    const messages = ids.map((id) => this.#pending.get(id)?.message).filter((message) => message !== undefined);
    this.#run = agent.run(messages.at(-1)!, {
      history: [...this.#history, ...messages.slice(0, -1)],
      token: root,
      hooks: { 'steer-delivered': ({ message }) => this.#steered(message) },
    });
    const outcome = await this.#run.outcome;
    this.#run = undefined;
    this.#history = outcome.messages;
    this.#resolve(this.#replyFrom(ids.at(-1)!, outcome));
    this.#apply({ type: 'run-ended' });
  }

  #steered(message: UserMessage): void {
    const id = this.#state.steered.find((one) => this.#pending.get(one)?.message === message);
    if (id !== undefined) this.#apply({ type: 'steer-delivered', id });
  }

  #replyFrom(messageId: string, outcome: Outcome): Reply {
    const base = { conversationId: this.#id, messageId, outcome };
    if (outcome.status === 'success') return { ...base, status: 'answered', text: outcome.text };
    if (outcome.status === 'failed')
      return { ...base, status: 'failed', text: 'Something went wrong; nothing more is running.' };
    const describe = this.#setup.describeCancel ?? describeCancelled;
    const status = outcome.reason.kind === 'superseded' ? 'superseded' : 'cancelled';
    return { ...base, status, text: describe(outcome) };
  }

  #early(messageId: string, status: EarlyStatus): Reply {
    return { conversationId: this.#id, messageId, status, text: describeEarly(status) };
  }

  #resolve(reply: Reply): void {
    const pending = this.#pending.get(reply.messageId);
    this.#pending.delete(reply.messageId);
    pending?.token[Symbol.dispose]();
    this.#setup.tell({ type: 'message-answer', at: this.#setup.world.clock.now(), conversationId: this.#id, reply });
    pending?.resolve(reply);
  }
}

/** What was done before the stop, in one or two sentences. */
function describeCancelled(outcome: Outcome & { status: 'cancelled' }): string {
  const done = outcome.calls.filter(({ state }) => state === 'finished').map(({ tool }) => tool);
  const unknown = outcome.calls.filter(({ state }) => state === 'unknown').map(({ tool }) => tool);
  const said = [done.length > 0 ? `Stopped. Done so far: ${done.join(', ')}.` : 'Stopped. Nothing was done.'];
  if (unknown.length > 0) said.push(`Not known whether it took effect: ${unknown.join(', ')}.`);
  return said.join(' ');
}
