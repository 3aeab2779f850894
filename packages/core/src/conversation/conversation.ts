import type { Agent } from '../run/agent.ts';
import type { Message, UserMessage } from '../run/history/message.ts';
import type { RunEvent } from '../run/report/events.ts';
import type { Outcome } from '../run/report/outcome.ts';
import type { Run } from '../run/run.ts';
import { type AppContext, type HookContext, toContextKey } from '../stop/app-context.ts';
import type { World } from '../stop/clock.ts';
import { createListener, type Hooks, reportFailure } from '../stop/hooks.ts';
import { type CancelReasonLike, createReason } from '../stop/token/reason.ts';
import { type CancelOptions, type CancelReceipt, readCancelOptions } from '../stop/token/receipt.ts';
import { tokenFor } from '../stop/token/source.ts';
import type { CancellationToken } from '../stop/token/token.ts';
import { describeStop } from './describe.ts';
import type { ConversationEvent, Reply, UnstampedEvent } from './events.ts';
import {
  type ConversationEffect,
  type ConversationInput,
  type ConversationState,
  describeEarlyStatus,
  type EarlyStatus,
  NEW_CONVERSATION,
  type Policy,
  reduceConversation,
} from './policy.ts';

export interface MessageOptions {
  /** What this message does to an active run. Defaults to `replace`. */
  readonly policy?: Policy | undefined;
  /** The sender's own id: a message that is delivered twice is processed once. */
  readonly messageId?: string | undefined;
  /** Wait this long for more messages of the same `context` and process them as one. */
  readonly debounceMs?: number | undefined;
  /** Passed to the tools, hooks, `approve` and sub-agents of the run that answers this message, and to no other. */
  readonly context?: AppContext | undefined;
  /** Called with each event of the run that answers this message. It cannot slow the run down. */
  readonly onEvent?: ((event: RunEvent) => unknown) | undefined;
  /** Withdraws this message, and stops the run that answers it. */
  readonly token?: CancellationToken | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What a conversation is made of. */
export interface ConversationParts {
  readonly agent: Agent;
  readonly policy?: Policy | undefined;
  /** Creates the reply text of a cancelled run. Defaults to a description of what was done so far. */
  readonly describeCancel?: ((outcome: Outcome & { status: 'cancelled' }) => string) | undefined;
  readonly hooks?: Hooks<ConversationEvent> | undefined;
}

interface ConversationSetup extends ConversationParts {
  readonly world: World;
  /** When true, no more runs start. */
  readonly isClosed: () => boolean;
  readonly emit: (event: ConversationEvent, about: HookContext) => void;
  readonly send: (reply: Reply) => Promise<void>;
}

const SUPERSEDED = { kind: 'superseded', message: 'a newer message arrived' };
const FAILED = 'Something went wrong; nothing more is running.';

interface Pending {
  readonly message: UserMessage;
  readonly context: AppContext | undefined;
  readonly onEvent: MessageOptions['onEvent'];
  /** Called when it is this message's turn: with the messages that its run answers, or why it gets no run. */
  readonly begin: (turn: readonly UserMessage[] | EarlyStatus) => void;
  readonly turn: Promise<readonly UserMessage[] | EarlyStatus>;
  /** The run that answers the message is a child of this token, so every cancel of the message reaches it. */
  readonly token: CancellationToken;
}

/** One conversation. Carries out what the policy decides. */
export class Conversation {
  readonly #id: string;
  readonly #setup: ConversationSetup;
  /** Messages without a reply so far. */
  readonly #pending = new Map<string, Pending>();
  /** How many cancels there were. */
  #cancels = 0;
  #state: ConversationState = NEW_CONVERSATION;
  #history: readonly Message[] = [];
  #run: Run | undefined;
  #debounceTimer: Disposable | undefined;
  /** One for each message that is being processed. */
  readonly #replies = new Set<Promise<void>>();
  #sent: Promise<void> | undefined;

  constructor(id: string, setup: ConversationSetup) {
    this.#id = id;
    this.#setup = setup;
  }

  get history(): readonly Message[] {
    return this.#history;
  }

  get isIdle(): boolean {
    return this.#pending.size === 0 && this.#state.running === undefined;
  }

  async receive(message: UserMessage, options: MessageOptions): Promise<Reply> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#replies.add(promise);
    try {
      return await this.#receive(message, options);
    } finally {
      this.#replies.delete(promise);
      resolve();
    }
  }

  async #receive(message: UserMessage, options: MessageOptions): Promise<Reply> {
    const { messageId: id = this.#setup.world.createId(), policy = this.#setup.policy ?? 'replace', context } = options;
    // Before the hooks: they may remove, cancel or close a conversation, and one that receives a message is not idle.
    const [pending, cancels] = [this.#add(id, message, options), this.#cancels];
    try {
      this.#emit({ type: 'message-received', messageId: id, policy }, context);
    } catch (error) {
      if (pending) this.#leave(id); // The sender gets the error of the clock.
      throw error;
    }
    if (pending === undefined) return this.#early(id, 'duplicate');
    const { token, turn } = pending;
    // Withdrawn before it arrived: it must not supersede the active run.
    if (token.isCancelled || cancels !== this.#cancels || this.#setup.isClosed()) this.#leave(id)?.begin('cancelled');
    else {
      token.onCancel(() => this.#apply({ type: 'withdraw', id }));
      this.#apply({ type: 'message', id, policy, debounceMs: options.debounceMs ?? 0, context: toContextKey(context) });
    }
    // Wait for the turn here: the run then starts in the async context of that message, not of another user's.
    const messages = await turn;
    if (typeof messages !== 'string') return this.#answer(id, messages);
    return this.#answered(this.#early(id, messages), context);
  }

  /** Adds a message, unless it is known. */
  #add(id: string, message: UserMessage, options: MessageOptions): Pending | undefined {
    // Check `#pending` too: an unanswered message may outlast the list of remembered ids.
    if (this.#pending.has(id) || this.#state.seen.includes(id)) return undefined;
    const { promise: turn, resolve: begin } = Promise.withResolvers<readonly UserMessage[] | EarlyStatus>();
    const token = tokenFor(options, { name: `message ${id}`, clock: this.#setup.world.clock });
    const pending: Pending = { message, begin, turn, token, onEvent: options.onEvent, context: options.context };
    this.#pending.set(id, pending);
    return pending;
  }

  /** Stops the active run and drops the waiting messages. */
  cancel(given: CancelReasonLike = {}, options: CancelOptions = {}): CancelReceipt {
    readCancelOptions(options, 'graceful');
    const { clock } = this.#setup.world;
    const reason = createReason(given, clock.now());
    // Don't look it up later: replying to a dropped message may start another run.
    const [live, isIdle] = [this.#stoppable(), this.isIdle];
    this.#cancels++;
    this.#apply({ type: 'cancel' });
    if (live !== undefined) return live.cancel(reason, options);
    const receipt: CancelReceipt = isIdle
      ? { result: 'too-late' }
      : { result: 'accepted', level: 'drain', reason, killAt: clock.now() };
    this.#emit({ type: 'cancel-requested', receipt: receipt.result, reason });
    return receipt;
  }

  /** Resolves when nothing is running and every reply is sent. */
  async settled(): Promise<void> {
    while (this.#replies.size > 0) await Promise.all(this.#replies);
    await this.#sent;
  }

  /** The target of a cancel: the active run, or its message while the run is being started. */
  #stoppable(): Pick<Run, 'cancel'> | undefined {
    const { running } = this.#state;
    return running && (this.#run ?? this.#pending.get(running.ids.at(-1)!)?.token);
  }

  #apply(input: ConversationInput): void {
    const { state, effects } = reduceConversation(this.#state, input);
    this.#state = state;
    if (state.debouncing === undefined) this.#debounceTimer?.[Symbol.dispose]();
    for (const effect of effects) this.#perform(effect);
  }

  #perform(effect: ConversationEffect): void {
    switch (effect.type) {
      case 'start': {
        const messages = effect.ids.map((id) => this.#pending.get(id)!);
        messages.at(-1)!.begin(messages.map(({ message }) => message));
        break;
      }
      case 'stop':
        this.#stoppable()?.cancel(SUPERSEDED);
        break;
      case 'steer':
        this.#steer(effect.id);
        break;
      case 'gather':
        this.#debounceTimer?.[Symbol.dispose]();
        this.#debounceTimer = this.#setup.world.clock.setTimer(effect.ms, () => this.#apply({ type: 'gathered' }));
        break;
      case 'answer':
        this.#leave(effect.id)?.begin(effect.status);
        break;
    }
  }

  /** Runs the agent for a batch of messages; the last one gets the reply. Never rejects. */
  async #answer(id: string, messages: readonly UserMessage[]): Promise<Reply> {
    let reply: Reply;
    const { context } = this.#pending.get(id)!;
    try {
      const outcome = await this.#start(id, messages).outcome;
      this.#history = outcome.messages;
      reply = this.#replyFrom(id, outcome);
    } catch (error) {
      // A custom agent may throw; ours do not.
      reportFailure(this.#setup.hooks, 'agent', error);
      this.#history = [...this.#history, ...messages];
      reply = { conversationId: this.#id, messageId: id, status: 'failed', text: FAILED };
    }
    this.#run = undefined;
    this.#leave(id);
    this.#apply({ type: 'run-ended' });
    return this.#answered(reply, context);
  }

  #start(id: string, messages: readonly UserMessage[]): Run {
    const { agent, hooks } = this.#setup;
    const { token, onEvent, context } = this.#pending.get(id)!;
    const emitEvent = onEvent && createListener('onEvent', onEvent, hooks);
    const run = agent.run(messages.at(-1)!, {
      history: [...this.#history, ...messages.slice(0, -1)],
      context,
      token,
      hooks: {
        any: (event) => {
          this.#notice(event, context);
          emitEvent?.(event);
        },
      },
    });
    this.#run = run;
    // Messages that arrived while the run was being started.
    for (const steered of this.#state.steered) this.#steer(steered);
    return run;
  }

  #steer(id: string): void {
    const { message, token } = this.#pending.get(id)!;
    this.#run?.steer(message, { token });
  }

  #notice(event: RunEvent, context: AppContext | undefined): void {
    switch (event.type) {
      case 'steer-delivered': {
        const id = this.#state.steered.find((one) => this.#pending.get(one)?.message === event.message);
        if (id !== undefined) this.#apply({ type: 'steer-delivered', id });
        break;
      }
      case 'cancel-requested':
      case 'level-changed':
      case 'call-waiting':
        this.#emit(event, context);
        break;
      default:
        break;
    }
  }

  #replyFrom(messageId: string, outcome: Outcome): Reply {
    const base = { conversationId: this.#id, messageId, outcome };
    if (outcome.status === 'success') return { ...base, status: 'answered', text: outcome.text };
    if (outcome.status === 'failed') return { ...base, status: 'failed', text: FAILED };
    const status = outcome.reason.kind === 'superseded' ? 'superseded' : 'cancelled';
    return { ...base, status, text: describeStop(outcome, this.#setup) };
  }

  #early(messageId: string, status: EarlyStatus): Reply {
    return { conversationId: this.#id, messageId, status, text: describeEarlyStatus(status) };
  }

  /** A message that leaves can no longer be withdrawn. */
  #leave(id: string): Pending | undefined {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    pending?.token[Symbol.dispose]();
    return pending;
  }

  #answered(reply: Reply, context: AppContext | undefined): Reply {
    this.#emit({ type: 'message-answered', reply }, context);
    this.#sent = this.#setup.send(reply);
    return reply;
  }

  #emit(event: UnstampedEvent<ConversationEvent>, context?: AppContext): void {
    const stamp = { at: this.#setup.world.clock.now(), conversationId: this.#id };
    this.#setup.emit({ ...event, ...stamp } as ConversationEvent, { context });
  }
}
