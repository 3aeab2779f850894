import { createReason } from '@whoa/core/embed';
import type { CancelledWork } from '@whoa/core/internal';
import { describeCancelled, describeEarlyStatus, reportFailure } from '@whoa/core/internal';
import { readJournal } from '../run/journal/read-journal.ts';
import { standingOf } from '../run/recovery/resume.ts';
import type { RunnerOptions } from '../run/runner.ts';
import type { TaskStore } from '../store.ts';
import type { TaskRecord } from '../task.ts';

type EarlyStatus = Parameters<typeof describeEarlyStatus>[0];

/** What became of one message. */
export interface StoreReply {
  readonly conversationId: string;
  readonly messageId: string;
  /** `released`: this instance shut down or lost the task; another one will answer. */
  readonly status: 'answered' | 'failed' | 'released' | EarlyStatus;
  /** Words for the person; on a cancel, what was done so far. */
  readonly text: string;
  /** The task that took the message; there is none when it was rejected, or withdrawn before it came. */
  readonly task?: TaskRecord;
}

/** What is needed to say something to the person who wrote. */
export interface ReplyOptions extends Pick<RunnerOptions, 'store' | 'hooks'> {
  /** Only for replies that should be sent: not for messages that were superseded, merged, steered or redelivered. */
  readonly onReply?: (reply: StoreReply) => unknown;
  /** What to say when a run was cancelled; defaults to what was done so far. */
  readonly describeCancel?: (work: CancelledWork) => string;
}

type Said = Pick<StoreReply, 'status' | 'text'>;

/** What is said of a message that got no run of its own. */
export function early(status: EarlyStatus): Said {
  return { status, text: describeEarlyStatus(status) };
}

/** Messages whose senders should hear something. */
const SENT: ReadonlySet<StoreReply['status']> = new Set(['answered', 'failed', 'cancelled', 'rejected']);

/** Hands a reply to `onReply`, if it should be sent. */
export async function send(reply: StoreReply, { onReply, hooks }: ReplyOptions): Promise<StoreReply> {
  try {
    if (SENT.has(reply.status)) await onReply?.(reply);
  } catch (error) {
    reportFailure(hooks, 'onReply', error);
  }
  return reply;
}

/** Reasons of the store's own that are no cancel to the person who wrote. */
const EARLY: ReadonlySet<string> = new Set<EarlyStatus>(['superseded', 'merged', 'steered', 'rejected']);

/** What is said of a task that has ended, wherever it ran. */
export async function replyOf(task: TaskRecord, options: ReplyOptions): Promise<Said> {
  const { status, outcome, startedAt } = task;
  if (status === 'success') return { status: 'answered', text: outcome?.answer ?? '' };
  if (status === 'failed') return { status: 'failed', text: 'Something went wrong; nothing more is running.' };
  const kind = outcome?.reason?.kind ?? 'user';
  const answered = EARLY.has(kind) ? (kind as EarlyStatus) : 'cancelled';
  if (startedAt === undefined) return early(answered);
  return { status: answered, text: await describeTask(task, options) };
}

async function describeTask(task: TaskRecord, options: ReplyOptions): Promise<string> {
  const work = await cancelledWork(options.store, task);
  try {
    if (options.describeCancel !== undefined) return options.describeCancel(work);
  } catch (error) {
    reportFailure(options.hooks, 'describeCancel', error);
  }
  return describeCancelled(work);
}

/** What a cancelled task had done, from its record and its journal: the worker that ran it may be gone. */
async function cancelledWork(store: TaskStore, task: TaskRecord): Promise<CancelledWork> {
  const { results, open } = standingOf(await readJournal(store, task));
  // Only a worker that was lost leaves calls open.
  const lost = open.map(({ id, tool, started }) => {
    const state = started ? ('unknown' as const) : ('not-started' as const);
    return { callId: id, tool, state };
  });
  const { answer = '', reason, complete = false } = task.outcome ?? {};
  return {
    reason: reason ?? createReason({}, task.endedAt ?? 0),
    text: answer,
    calls: [...results, ...lost],
    complete,
  };
}
