import {
  type Agent,
  type AppContext,
  type CancellationToken,
  type CancelReasonInit,
  isCancelledError,
  type Json,
  type Message,
  type Policy,
  type RunEvent,
} from '@whoa/core';
import { type CancelOptions, systemWorld, type World } from '@whoa/core/embed';
import { createListener, createReplySender, MESSAGE_RULES, POLICY_RULE, settings } from '@whoa/core/internal';
import { retryLostResponse } from '../delivery/retry-lost-response.ts';
import { LeaseLostError } from '../errors.ts';
import { isFinalStatus } from '../ledger/rules/status.ts';
import { type Runner, type RunnerOptions, StoreFullError } from '../run/runner.ts';
import { RUNNER_RULES } from '../run/runner-rules.ts';
import { createRunner } from '../run/store-runner.ts';
import type { StoreCancelReceipt } from '../store.ts';
import type { TaskRef } from '../task.ts';
import { ObservedConversations, type StoreConversationHooks } from './observed.ts';
import { early, type ReplyOptions, readReply, type StoreReply } from './reply.ts';

type RunInput = Parameters<Agent['run']>[0];

interface StoreMessageOptions {
  /** What this message does to a run in progress, on any machine. Defaults to `replace`. */
  readonly policy?: Policy | undefined;
  /** The sender's message id: a message that is delivered twice, even to two instances, is processed once. */
  readonly messageId?: string | undefined;
  /** Passed to the tools, hooks, `approve` and sub-agents of the run that replies to this message, in any process. */
  readonly context?: AppContext | undefined;
  /** Wait this long for more messages of the same `context` and merge them. */
  readonly debounceMs?: number | undefined;
  /** Withdraws this message and stops the run that replies to it. */
  readonly token?: CancellationToken | undefined;
  readonly signal?: AbortSignal | undefined;
  /**
   * Called once the store has the message, including when it was delivered before. A webhook acknowledges its delivery here: an
   * earlier acknowledgement loses the message if this process crashes or the store is away.
   */
  readonly onStored?: ((task: TaskRef) => unknown) | undefined;
  /** Called with every event of the run that replies to this message, as it happens. It cannot slow the run down. */
  readonly onEvent?: ((event: RunEvent) => unknown) | undefined;
}

export interface StoreConversationsOptions
  extends Pick<
      RunnerOptions,
      'worker' | 'leaseMs' | 'pollIntervalMs' | 'channel' | 'cancellationChecker' | 'cancellations' | 'approvals'
    >,
    ReplyOptions {
  readonly agent: Agent;
  /** Hear messages, cancels and tasks. */
  readonly hooks?: StoreConversationHooks | undefined;
  /** The tenant that owns the conversations. Defaults to `default`. */
  readonly tenant?: string | undefined;
  readonly policy?: Policy | undefined;
  readonly world?: World | undefined;
}

/** Conversations in a store: any number of instances, one live run per conversation. */
export interface StoreConversations extends AsyncDisposable, Pick<Runner, 'listen' | 'setCancellationChecker'> {
  /** Runs the message in this process when the conversation queue reaches it. Never throws because of a cancel. */
  processMessage(id: string, message: RunInput, options?: StoreMessageOptions): Promise<StoreReply>;
  /** Stops the live run, in any process, and drops the waiting messages. */
  cancel(id: string, reason?: CancelReasonInit, options?: CancelOptions): Promise<StoreCancelReceipt>;
  /** Returns the messages of a conversation so far. */
  history(id: string): Promise<readonly Message[]>;
  /** Takes over messages whose instance crashed. */
  serve(): Promise<void>;
}

const STORE_MESSAGE_RULES: settings.Rules<StoreMessageOptions> = { ...MESSAGE_RULES, onStored: settings.callback };

const { agents: _, ...SHARED_RULES } = RUNNER_RULES;

const CONVERSATIONS_RULES: settings.Rules<StoreConversationsOptions> = {
  ...SHARED_RULES,
  agent: settings.required(settings.having('an agent', 'run')),
  tenant: settings.nonEmptyText,
  policy: POLICY_RULE,
  onReply: settings.callback,
  describeCancel: settings.callback,
};

/**
 * Creates conversations that are kept in a store, for any number of instances.
 *
 * @returns The conversations. They never throw because of a cancel.
 * @throws {@link SettingsError} when an option is invalid.
 *
 * @example
 * ```ts
 * import { createStoreConversations } from '@whoa/tasks';
 *
 * await using conversations = createStoreConversations({ agent, store, tenant: 'acme' });
 * const reply = await conversations.processMessage(from, text, { messageId });
 * console.log(reply.status);
 * ```
 */
export function createStoreConversations(options: StoreConversationsOptions): StoreConversations {
  return openConversations(settings.readSettings<StoreConversationsOptions>(options, CONVERSATIONS_RULES));
}

function openConversations(options: StoreConversationsOptions): StoreConversations {
  const { agent, tenant = 'default', policy: usual = 'replace', onReply, describeCancel, ...forRunner } = options;
  const { store, world = systemWorld } = forRunner;
  // Tasks whose messages arrived in this process. All others are taken over from instances that crashed.
  const own = new Set<string>();
  const observed = new ObservedConversations(options.hooks, world);
  const runner = createRunner({
    ...forRunner,
    world,
    agents: { [agent.name]: observed.observe(agent) },
    hooks: observed.runnerHooks(async (event) => {
      if (event.tenant === tenant && !own.has(event.id)) await answerFor(event.id);
    }),
  });

  /** Sends the reply to a message that another instance received. */
  async function answerFor(id: string): Promise<void> {
    const task = await store.get({ tenant, id });
    if (task?.conversation === undefined || !isFinalStatus(task.status)) return;
    const about = { conversationId: task.conversation, messageId: task.key ?? id };
    await answer({ ...about, ...(await readReply(task, options)), task }, task.context);
  }

  const send = createReplySender<StoreReply>({ onReply, hooks: options.hooks, clock: world.clock });
  const answer = (reply: StoreReply, context: AppContext | undefined): Promise<StoreReply> => {
    observed.report(reply.conversationId, { type: 'message-answered', reply }, context);
    return send(reply).then(() => reply);
  };

  async function process(id: string, message: RunInput, asked: StoreMessageOptions): Promise<StoreReply> {
    const { messageId = world.createId(), policy = usual, context, debounceMs } = asked;
    const about = { conversationId: id, messageId };
    observed.report(id, { type: 'message-received', messageId, policy }, context);
    // Withdrawn before it was stored: it must not even supersede the current run.
    if (asked.token?.isCancelled || asked.signal?.aborted) return answer({ ...about, ...early('cancelled') }, context);
    const origin = { tenant, conversation: id, key: messageId, context };
    const wanted = { ...origin, agent: agent.name, input: message as Json, preferredWorker: runner.worker, debounceMs };
    // Pass our own nonce: after a lost response, our own message must not look like a duplicate.
    const nonce = world.createId();
    const onStoreError = (error: unknown): void => observed.emit({ type: 'store-error', error });
    const receipt = await retryLostResponse(() => store.create(wanted, { policy, nonce }), { world, onStoreError });
    if (receipt.result === 'full') throw new StoreFullError(receipt);
    if (receipt.result === 'rejected') return answer({ ...about, ...early('rejected') }, context);
    const ref = { tenant, id: receipt.task.id };
    // Before the run, not after it: its messenger waits.
    if (asked.onStored) createListener('onStored', () => asked.onStored?.(ref), options.hooks)({ type: 'stored' });
    // The instance that received it first processes it.
    if (receipt.result === 'duplicate') return { ...about, ...early('duplicate'), task: receipt.task };
    own.add(ref.id);
    try {
      await runner.runExisting(ref, asked);
      const task = (await store.get(ref)) ?? receipt.task;
      return await answer({ ...about, ...(await readReply(task, options)), task }, context);
    } catch (error) {
      if (!isCancelledError(error) && !(error instanceof LeaseLostError)) throw error;
      return { ...about, status: 'released', text: '', task: receipt.task };
    } finally {
      own.delete(ref.id);
    }
  }

  return {
    processMessage: async (id, message, asked = {}) =>
      process(id, message, settings.readSettings<StoreMessageOptions>(asked, STORE_MESSAGE_RULES)),
    async cancel(conversation, reason = {}, cancelOptions = {}) {
      const receipt = await store.cancel({ tenant, conversation }, reason, cancelOptions);
      observed.reportCancel(conversation, receipt, reason);
      return receipt;
    },
    history: async (conversation) =>
      ((await store.conversation({ tenant, conversation }))?.history ?? []) as unknown as readonly Message[],
    serve: () => runner.serve(),
    listen: (channel) => runner.listen(channel),
    setCancellationChecker: (checker) => runner.setCancellationChecker(checker),
    [Symbol.asyncDispose]: () => runner[Symbol.asyncDispose](),
  };
}
