import {
  type Agent,
  type CancellationToken,
  type CancelOptions,
  type CancelReasonInit,
  createTeller,
  describeEarly,
  type EarlyStatus,
  isCancelledError,
  type Json,
  type Message,
  type Policy,
  type RunInput,
  systemWorld,
  type World,
} from '@whoa/core';
import { LeaseLostError } from '../errors.ts';
import { insist } from '../run/insist.ts';
import type { RunnerEvent, RunnerOptions } from '../run/runner.ts';
import { createRunner } from '../run/store-runner.ts';
import { isFinal } from '../status.ts';
import type { StoreCancelReceipt, TaskStore } from '../store.ts';
import type { TaskRecord } from '../task.ts';

/** What became of one message. */
export interface StoreReply {
  readonly conversationId: string;
  readonly messageId: string;
  /** `released`: this instance shut down or lost the task; another one will answer. */
  readonly status: 'answered' | 'failed' | 'released' | EarlyStatus;
  /** Words for the person; on a cancel, what was said so far. */
  readonly text: string;
  /** The task that took the message; there is none when it was rejected, or withdrawn before it came. */
  readonly task?: TaskRecord;
}

export interface StoreMessageOptions {
  /** What this message does to a run under way, on whichever machine; `replace` unless said otherwise. */
  readonly policy?: Policy;
  /** The sender's own id: a message that is delivered twice, also to two instances, is processed once. */
  readonly messageId?: string;
  /** Wait this long for more messages and take them as one. */
  readonly debounceMs?: number;
  /** Withdraws this message, and stops the run that answers it. */
  readonly token?: CancellationToken;
  readonly signal?: AbortSignal;
}

export interface StoreConversationsOptions
  extends Pick<RunnerOptions, 'worker' | 'leaseMs' | 'pollMs' | 'flushMs' | 'approvals' | 'hooks'> {
  readonly agent: Agent;
  readonly store: TaskStore;
  /** Whose conversations these are. */
  readonly tenant?: string;
  readonly policy?: Policy;
  /** Only for replies that should be sent: not for messages that were superseded, merged, steered or redelivered. */
  readonly onReply?: (reply: StoreReply) => unknown;
  readonly world?: World;
}

/** Conversations on a store: any number of instances, one live run in each conversation. */
export interface StoreConversations extends AsyncDisposable {
  /** Runs the message here when its turn comes. Never throws because of a cancel. */
  processMessage(id: string, message: RunInput, options?: StoreMessageOptions): Promise<StoreReply>;
  /** Stops the live run, wherever it is, and drops what waits. */
  cancel(id: string, reason?: CancelReasonInit, options?: CancelOptions): Promise<StoreCancelReceipt>;
  history(id: string): Promise<readonly Message[]>;
  /** Takes over messages whose instance died. */
  serve(): Promise<void>;
}

/** Messages whose senders should hear something. */
const SENT: ReadonlySet<StoreReply['status']> = new Set(['answered', 'failed', 'cancelled', 'rejected']);

/** Reasons of the store's own that are no cancel to the person who wrote. */
const EARLY: ReadonlySet<string> = new Set<EarlyStatus>(['superseded', 'merged', 'steered', 'rejected']);

/** Creates conversations that live in a store. */
export function createConversations(options: StoreConversationsOptions): StoreConversations {
  const { agent, store, tenant = 'default', world = systemWorld, onReply } = options;
  /** Tasks whose messages came in here; the others are taken over from instances that died. */
  const own = new Set<string>();
  const tell = createTeller<RunnerEvent>(options.hooks);
  const runner = createRunner({
    ...options,
    world,
    agents: { [agent.name]: agent },
    hooks: {
      ...options.hooks,
      'task-end': async (event) => {
        await options.hooks?.['task-end']?.(event);
        if (event.tenant === tenant && !own.has(event.id)) await answerFor(event.id);
      },
    },
  });

  /** Sends the reply to a message that another instance had received. */
  async function answerFor(id: string): Promise<void> {
    const task = await store.get({ tenant, id });
    if (task?.conversation === undefined || !isFinal(task.status)) return;
    await answer({ conversationId: task.conversation, messageId: task.key ?? id, ...replyOf(task), task });
  }

  async function answer(reply: StoreReply): Promise<StoreReply> {
    if (SENT.has(reply.status)) await onReply?.(reply);
    return reply;
  }

  async function process(id: string, message: RunInput, asked: StoreMessageOptions): Promise<StoreReply> {
    const messageId = asked.messageId ?? world.createId();
    const about = { conversationId: id, messageId };
    // Withdrawn before it came: it must not even supersede what runs.
    if (asked.token?.isCancelled || asked.signal?.aborted) return answer({ ...about, ...early('cancelled') });
    const wanted = {
      tenant,
      agent: agent.name,
      input: message as Json,
      conversation: id,
      key: messageId,
      worker: runner.worker,
      holdMs: asked.debounceMs,
    };
    const policy = asked.policy ?? options.policy ?? 'replace';
    // With a nonce of its own: an answer that was lost must not make our own message look like somebody else's.
    const nonce = world.createId();
    const onStoreError = (error: unknown): void => tell({ type: 'store-error', error });
    const receipt = await insist(() => store.create(wanted, { policy, nonce }), { clock: world.clock, onStoreError });
    if (receipt.answer === 'rejected') return answer({ ...about, ...early('rejected') });
    // Whoever was first processes it, here or elsewhere.
    if (receipt.answer === 'duplicate') return { ...about, ...early('duplicate'), task: receipt.task };
    const ref = { tenant, id: receipt.task.id };
    own.add(ref.id);
    try {
      await runner.work(ref, asked);
      const task = (await store.get(ref)) ?? receipt.task;
      return await answer({ ...about, ...replyOf(task), task });
    } catch (error) {
      if (!isCancelledError(error) && !(error instanceof LeaseLostError)) throw error;
      return { ...about, status: 'released', text: '', task: receipt.task };
    } finally {
      own.delete(ref.id);
    }
  }

  return {
    processMessage: (id, message, asked = {}) => process(id, message, asked),
    cancel: (conversation, reason = {}, how = {}) => store.cancel({ tenant, conversation }, reason, how),
    history: async (conversation) =>
      ((await store.conversation({ tenant, conversation }))?.history ?? []) as unknown as readonly Message[],
    serve: () => runner.serve(),
    [Symbol.asyncDispose]: () => runner[Symbol.asyncDispose](),
  };
}

function early(status: EarlyStatus): Pick<StoreReply, 'status' | 'text'> {
  return { status, text: describeEarly(status) };
}

function replyOf({ status, outcome }: TaskRecord): Pick<StoreReply, 'status' | 'text'> {
  const text = outcome?.answer ?? '';
  if (status === 'success') return { status: 'answered', text };
  if (status === 'failed') return { status: 'failed', text: 'Something went wrong; nothing more is running.' };
  const kind = outcome?.reason?.kind ?? 'user';
  return EARLY.has(kind) ? { status: kind as EarlyStatus, text } : { status: 'cancelled', text: text || 'Stopped.' };
}
