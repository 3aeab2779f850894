import { createReason } from '@whoa/core/embed';
import { type CancelledWork, describeEarlyStatus, describeStop, type HookError } from '@whoa/core/internal';
import { readJournal } from '../run/journal/read-journal.ts';
import { readRecoveryState } from '../run/recovery/resume.ts';
import type { RunnerOptions } from '../run/runner.ts';
import type { ClientStore } from '../store.ts';
import type { TaskRecord } from '../task.ts';

type EarlyStatus = Parameters<typeof describeEarlyStatus>[0];

/** The reply to one message. */
export interface StoreReply {
  readonly conversationId: string;
  readonly messageId: string;
  /** `released`: this instance shut down or lost the task; another one will reply. */
  readonly status: 'answered' | 'failed' | 'released' | EarlyStatus;
  /** Text for the user. After a cancel, what was done so far. */
  readonly text: string;
  /** The task that took the message. Left out when the message was rejected, or withdrawn before it was stored. */
  readonly task?: TaskRecord;
}

/** Options for replies to users. */
export interface ReplyOptions extends Pick<RunnerOptions, 'store'> {
  readonly hooks?: { readonly 'hook-error'?: ((event: HookError) => unknown) | undefined } | undefined;
  /** Called only for replies to send: not for messages that were superseded, merged, steered or redelivered. */
  readonly onReply?: ((reply: StoreReply) => unknown) | undefined;
  /** Returns the text for a cancelled run. Defaults to what was done so far. */
  readonly describeCancel?: ((work: CancelledWork) => string) | undefined;
}

type ReplyState = Pick<StoreReply, 'status' | 'text'>;

/** The reply to a message that got no run. */
export function early(status: EarlyStatus): ReplyState {
  return { status, text: describeEarlyStatus(status) };
}

/** Reasons set by the store that the user should not see as a cancel. */
const EARLY: ReadonlySet<string> = new Set<EarlyStatus>(['superseded', 'merged', 'steered', 'rejected']);

/** Returns the reply for a task that has ended, in any process. */
export async function readReply(task: TaskRecord, options: ReplyOptions): Promise<ReplyState> {
  const { status, outcome, startedAt } = task;
  if (status === 'success') return { status: 'answered', text: outcome?.answer ?? '' };
  if (status === 'failed') return { status: 'failed', text: 'Something went wrong; nothing more is running.' };
  const kind = outcome?.reason?.kind ?? 'user';
  const answered = EARLY.has(kind) ? (kind as EarlyStatus) : 'cancelled';
  if (startedAt === undefined) return early(answered);
  return { status: answered, text: describeStop(await cancelledWork(options.store, task), options) };
}

/** Reads what a cancelled task had done from its record and journal: the worker that ran it may be gone. */
async function cancelledWork(store: ClientStore, task: TaskRecord): Promise<CancelledWork> {
  const { results, open } = readRecoveryState(await readJournal(store, task));
  // Only a lost worker leaves calls open.
  const lost = open.map(({ id, tool, started }) => {
    const state = started ? ('unknown' as const) : ('not-started' as const);
    return { callId: id, tool, state };
  });
  const { answer = '', reason, isComplete = false } = task.outcome ?? {};
  return {
    reason: reason ?? createReason({}, task.endedAt ?? 0),
    text: answer,
    calls: [...results, ...lost],
    isComplete,
  };
}
