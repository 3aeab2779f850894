import type { StopMode } from '@whoa/core';
import type { QuestionAnswer } from '@whoa/server/task-client';
import type {
  AnswerReceipt,
  EraseReceipt,
  EraseTarget,
  FleetLoad,
  HaltReceipt,
  ListFilter,
  ListPage,
  PauseTarget,
  RequeueReceipt,
  SendReceipt,
  StoreCancelReceipt,
  TaskCounts,
  TaskRecord,
  TaskSummary,
} from '@whoa/tasks';
import type { QuestionPage, WorkerPage } from '@whoa/tasks/internal';
import { isLost } from '../local-tasks.ts';
import type { FollowOptions } from './follow-task.ts';

interface Poison {
  /** Only tasks whose workers crashed again and again. */
  readonly poison?: boolean;
}

interface CancelRequest {
  readonly reason: string | undefined;
  readonly mode: StopMode;
  readonly undo: boolean;
}

interface HaltRequest extends Pick<CancelRequest, 'reason'> {
  readonly mode: Extract<StopMode, string>;
  readonly parked: boolean;
  readonly waitMs: number;
}

/** Which tasks a source has. */
export interface SourceOptions {
  readonly tenant: string | undefined;
  /** The tasks of every tenant. */
  readonly all: boolean;
  readonly env: NodeJS.ProcessEnv;
}

/** Where a command finds its tasks: in a store or on a server. */
export interface TaskSource extends AsyncDisposable {
  /** The store or server, for users. */
  readonly location: string;
  /** The stop mode if the command names none. */
  readonly stopMode: StopMode;
  get(id: string): Promise<TaskRecord | undefined>;
  list(filter: Omit<ListFilter, 'tenant'> & Poison): Promise<ListPage>;
  cancel(id: string, request: CancelRequest): Promise<StoreCancelReceipt>;
  cancelCall(id: string, callId: string, reason: string | undefined): Promise<SendReceipt>;
  /** Lists the open questions, at most `MAX_QUESTIONS`, oldest first. */
  questions(): Promise<QuestionPage>;
  /** Answers a question by its id. The first answer counts. */
  answer(question: string, answer: QuestionAnswer): Promise<AnswerReceipt>;
  steer(id: string, message: string): Promise<SendReceipt>;
  /** Reads a task's journal until the task has ended, or until a callback returns `stop`. */
  follow(id: string, options: FollowOptions): Promise<TaskRecord>;
  counts(): Promise<readonly TaskCounts[]>;
  workers(): Promise<WorkerPage>;
  fleet(): Promise<FleetLoad>;
  pause(target: PauseTarget, isPaused: boolean): Promise<void>;
  halt(target: PauseTarget, request: HaltRequest): Promise<HaltReceipt>;
  requeue(id: string): Promise<RequeueReceipt>;
  erase(target: EraseTarget): Promise<EraseReceipt>;
  /** Frees the tasks of workers that died. */
  reclaimLost(): Promise<void>;
  /** Writes the end of a cancelled task whose worker died. Nothing runs again. */
  settleOrphaned(task: TaskRecord): Promise<void>;
}

export const MAX_QUESTIONS = 200;
/** The most tasks that a server returns per page. */
const MAX_PAGE = 1_000;

/** Returns up to `limit` matching tasks, newest first, and whether there are more. */
export async function listTasks(
  source: Pick<TaskSource, 'list'>,
  { limit, ...filter }: Omit<ListFilter, 'tenant' | 'cursor' | 'limit'> & Poison & { readonly limit: number },
): Promise<{ readonly tasks: readonly TaskSummary[]; readonly hasMore: boolean }> {
  const tasks: TaskSummary[] = [];
  for (let cursor: string | undefined; ; ) {
    const size = Math.min(MAX_PAGE, limit - tasks.length);
    const page = await source.list({ ...filter, limit: size, ...(cursor !== undefined && { cursor }) });
    tasks.push(...page.tasks);
    cursor = page.next;
    if (cursor === undefined || tasks.length >= limit) return { tasks, hasMore: cursor !== undefined };
  }
}

/** Waiting tasks first, so that none of them starts because another was stopped. */
export const LIVE = ['init', 'running', 'cancelling'] as const;

interface LiveFilter {
  readonly status?: (typeof LIVE)[number] | undefined;
  readonly agent: string | undefined;
  readonly conversation?: string | undefined;
  /** How many tasks of each status are looked at. */
  readonly limit: number;
}

/** Returns the tasks that have not ended and match. */
export async function listLiveTasks(
  source: TaskSource,
  { status, agent, conversation, limit }: LiveFilter,
): Promise<readonly TaskSummary[]> {
  const found = new Map<string, TaskSummary>();
  for (const one of status === undefined ? LIVE : [status]) {
    const filter = { status: one, limit, ...(conversation !== undefined && { conversation }) };
    const { tasks } = await listTasks(source, filter);
    for (const task of tasks) if (agent === undefined || task.agent === agent) found.set(task.id, task);
  }
  return [...found.values()];
}

/** Workers take over a freed task within this time. After it, assume that there are none. */
const TAKEOVER_TIMEOUT_MS = 3_000;

/** Returns a check that frees lost tasks and returns whether a task has been lost for so long that no worker will take it. */
export function createLostCheck(source: TaskSource): (task: TaskSummary) => Promise<boolean> {
  let since: number | undefined;
  return async (task) => {
    await source.reclaimLost();
    if (!isLost(task)) since = undefined;
    else since ??= performance.now();
    return since !== undefined && performance.now() - since >= TAKEOVER_TIMEOUT_MS;
  };
}
