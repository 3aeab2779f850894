import type { Json, Policy, StopMode } from '@whoa/core';
import type {
  AnswerReceipt,
  ConversationRecord,
  CreateReceipt,
  EraseReceipt,
  EraseTarget,
  FleetLoad,
  FollowEvent,
  HaltReceipt,
  ListFilter,
  ListPage,
  NewTask,
  PageRequest,
  PauseTarget,
  RequeueReceipt,
  SendReceipt,
  StoreCancelReceipt,
  TaskCounts,
  TaskRecord,
  TaskStatus,
} from '@whoa/tasks';
import type { QuestionPage, QueuePage, TenantPage, WorkerPage } from '@whoa/tasks/internal';
import type { ClosedQuestionPage } from '../closed-questions.ts';
import { type FollowTaskOptions, followEvents } from './follow.ts';
import { readError, TaskApiError } from './task-api-error.ts';

const CANCELLED_AT_ONCE = 1_000;
/** What the statuses of refusals say about a task or a question. */
const MISSED = { 404: 'not-found', 409: 'too-late' };

/** The server to use, and the identity of the caller. */
export interface TaskClientOptions {
  /** The address of the task API: `https://tasks.example.com`. */
  readonly url: string;
  /** The bearer token. A page that has logged in does not need one. */
  readonly token?: string | undefined;
  /** The tenant that owns the tasks; for callers with the right `operate`. */
  readonly tenant?: string | undefined;
  readonly fetch?: typeof fetch | undefined;
}

/** A task to create. */
interface NewTaskRequest
  extends Pick<NewTask, 'agent' | 'input' | 'key' | 'priority' | 'notBefore' | 'deadline' | 'conversation'> {
  readonly policy?: Policy | undefined;
}

/** Why and how to stop. */
export interface CancelTaskOptions {
  readonly reason?: string | undefined;
  /** Defaults to `graceful`. */
  readonly mode?: Extract<StopMode, string> | undefined;
  readonly undo?: boolean | undefined;
}

/** Why and how to stop many tasks. */
interface CancelManyOptions extends CancelTaskOptions {
  /** Only returns which tasks it would stop. */
  readonly dryRun?: boolean | undefined;
}

/** Why and how to halt. */
interface HaltOptions extends Pick<CancelTaskOptions, 'reason' | 'mode'> {
  /** Also stops tasks that only wait for an answer. */
  readonly parked?: boolean | undefined;
  /** How long the server waits for running tasks: at most 30 s, the default. */
  readonly waitMs?: number | undefined;
}

/** The result for one of many tasks. */
export interface StoppedTask {
  readonly id: string;
  /** Its status before the cancel. */
  readonly status: TaskStatus;
  readonly result: StoreCancelReceipt['result'] | 'would-cancel';
}

/** A conversation with the end of its history. */
export interface ConversationView extends ConversationRecord {
  /** The total number of messages; `history` contains the last ones. */
  readonly historyLength: number;
}

/**
 * An answer to a question. To an approval: a `decision`; `always` and `never` also apply to everything that the question
 * lists under always, and `why` is the reason that the model gets with a no. To any other: the result of the call.
 */
export type QuestionAnswer =
  | { readonly decision: 'yes' | 'no' | 'always' | 'never'; readonly why?: string | undefined }
  | { readonly answer: Json }
  | { readonly error: string };

/**
 * Accesses the tasks of a server. Results of the store are returned, whatever the HTTP status was. Other refusals of
 * the server are thrown as `TaskApiError`.
 */
export interface TaskClient {
  /** Creates a task. */
  create(task: NewTaskRequest): Promise<CreateReceipt>;
  /** Returns a task. */
  get(id: string): Promise<TaskRecord | undefined>;
  /**
   * Lists tasks, newest first. With an agent, a page holds only those of its tasks that have it; `brief` leaves out
   * answers, results and stop reports.
   */
  list(
    filter?: Omit<ListFilter, 'tenant'> & {
      readonly agent?: string | undefined;
      readonly brief?: boolean | undefined;
      readonly poison?: boolean | undefined;
    },
  ): Promise<ListPage>;
  /** Stops a task, wherever it runs. */
  cancel(id: string, options?: CancelTaskOptions): Promise<StoreCancelReceipt>;
  /** Stops the current task of a conversation and all waiting tasks. */
  cancelConversation(id: string, options?: CancelTaskOptions): Promise<StoreCancelReceipt>;
  /** Stops all live tasks that match. */
  cancelAll(
    filter:
      | { readonly all: true }
      | {
          readonly status?: TaskStatus | undefined;
          readonly agent?: string | undefined;
          readonly conversation?: string | undefined;
        },
    options?: CancelManyOptions,
  ): Promise<readonly StoppedTask[]>;
  /** Stops one call; the task continues. */
  cancelCall(id: string, callId: string, options?: Pick<CancelTaskOptions, 'reason'>): Promise<SendReceipt>;
  /** Lists open questions, oldest first. */
  questions(page?: PageRequest): Promise<QuestionPage>;
  /** Lists the questions that were closed last, latest first, at most 200. */
  closedQuestions(): Promise<ClosedQuestionPage>;
  /** Answers a question, by the id that its journal entry has. The first answer counts. */
  answer(question: string, answer: QuestionAnswer): Promise<AnswerReceipt>;
  /** Sends a message to a running task. */
  steer(id: string, message: Json): Promise<SendReceipt>;
  /** Follows the journal as it grows, then one `end`. It reconnects by itself; no entry is skipped or repeated. */
  follow(id: string, options?: FollowTaskOptions): AsyncIterableIterator<FollowEvent, undefined>;
  /** Returns the state of a conversation and the end of its history. */
  conversation(id: string, options?: { readonly messages?: number | undefined }): Promise<ConversationView | undefined>;
  /** Counts tasks by status. */
  counts(): Promise<TaskCounts>;
  /** Lists tenants that have tasks; needs the right `operate`. */
  tenants(page?: PageRequest): Promise<TenantPage>;
  /** Lists workers of all tenants; needs the right `operate`. */
  workers(options?: { readonly limit?: number | undefined }): Promise<WorkerPage>;
  /** Summarises queues and workers by agent; needs the right `operate`. */
  fleet(): Promise<FleetLoad>;
  /** Lists queues with ready tasks, and what is paused; needs the right `operate`. */
  queues(page?: PageRequest): Promise<QueuePage>;
  /** Stops or resumes the delivery of an agent's, a tenant's or all tasks; needs the right `operate`. */
  pause(target: PauseTarget, isPaused: boolean): Promise<void>;
  /** Pauses, stops and waits until nothing runs, at most 30 s; needs the rights `operate` and `halt`. */
  halt(target: PauseTarget, options?: HaltOptions): Promise<HaltReceipt>;
  /** Creates a task with the input of one that failed or was cancelled. */
  requeue(id: string): Promise<RequeueReceipt>;
  /** Removes everything of a tenant or a conversation; needs the right `operate`. */
  erase(target: EraseTarget, options?: { readonly waitMs?: number | undefined }): Promise<EraseReceipt>;
}

/**
 * Creates a client of a server's task API, for any runtime with `fetch`.
 *
 * @returns The client.
 *
 * @example
 * ```ts
 * import { createTaskClient } from '@whoa/server/task-client';
 *
 * const client = createTaskClient({ url: 'https://tasks.example.com', token: 'the-token' });
 * const receipt = await client.cancel(taskId, { reason: 'no longer needed' });
 * console.log(receipt.result);
 * ```
 */
export function createTaskClient(options: TaskClientOptions): TaskClient {
  const { tenant } = options;
  const ask = createSender(options);
  // Without a tenant.
  const everywhere = async <T>(method: string, path: string, parts: Parts = {}): Promise<T> => {
    const response = await ask(method, path, parts);
    if (!response.ok) throw await readError(response);
    return (await response.json()) as T;
  };
  const send = <T>(method: string, path: string, { query, ...parts }: Parts = {}): Promise<T> =>
    everywhere<T>(method, path, { ...parts, query: { ...query, tenant } });
  const post = <T>(path: string, body: object): Promise<T> => send<T>('POST', path, { body });
  const cancelAt = async (path: string, options: CancelTaskOptions = {}): Promise<StoreCancelReceipt> =>
    post<StoreCancelReceipt>(path, options).catch(toReceipt<StoreCancelReceipt>(MISSED));
  const sendAt = (path: string, body: object): Promise<SendReceipt> =>
    post<SendReceipt>(path, body).catch(toReceipt<SendReceipt>(MISSED));
  const missing = toReceipt<undefined>({ 404: undefined });

  return {
    create: (task) => post<CreateReceipt>('/v1/tasks', task).catch(toReceipt<CreateReceipt>({ 409: 'rejected' })),
    get: (id) => send<TaskRecord>('GET', path`/v1/tasks/${id}`).catch(missing),
    list: (filter = {}) => send<ListPage>('GET', '/v1/tasks', { query: { ...filter } }),
    cancel: (id, options) => cancelAt(path`/v1/tasks/${id}/cancel`, options),
    cancelConversation: (id, options) => cancelAt(path`/v1/conversations/${id}/cancel`, options),
    async cancelAll(filter, options = {}) {
      // A task that one page stops is listed again by a later one, as cancelling: its first answer counts.
      const all = new Map<string, StoppedTask>();
      for (let cursor: string | undefined; ; ) {
        const body = { ...options, filter, limit: CANCELLED_AT_ONCE, ...(cursor !== undefined && { cursor }) };
        const page = await post<{ tasks: StoppedTask[]; next?: string }>('/v1/tasks/cancel', body);
        for (const task of page.tasks) if (!all.has(task.id)) all.set(task.id, task);
        cursor = page.next;
        if (cursor === undefined) return [...all.values()];
      }
    },
    cancelCall: (id, callId, options = {}) => sendAt(path`/v1/tasks/${id}/calls/${callId}/cancel`, options),
    questions: (page = {}) => send<QuestionPage>('GET', '/v1/questions', { query: { ...page } }),
    closedQuestions: () => send<ClosedQuestionPage>('GET', '/v1/questions/closed'),
    answer: (question, answer) =>
      post<AnswerReceipt>(path`/v1/questions/${question}`, answer).catch(toReceipt<AnswerReceipt>(MISSED)),
    steer: (id, message) => sendAt(path`/v1/tasks/${id}/steer`, { message }),
    follow: (id, options = {}) =>
      followEvents((lastEventId, signal) => {
        const headers = { 'last-event-id': lastEventId };
        return ask('GET', path`/v1/tasks/${id}/events`, { query: { tenant }, headers, signal });
      }, options),
    conversation: (id, query = {}) =>
      send<ConversationView>('GET', path`/v1/conversations/${id}`, { query: { ...query } }).catch(missing),
    counts: () => send<TaskCounts>('GET', '/v1/counts'),
    tenants: (page = {}) => everywhere<TenantPage>('GET', '/v1/tenants', { query: { ...page } }),
    workers: (query = {}) => everywhere<WorkerPage>('GET', '/v1/workers', { query: { ...query } }),
    fleet: () => everywhere<FleetLoad>('GET', '/v1/fleet'),
    queues: (page = {}) => everywhere<QueuePage>('GET', '/v1/queues', { query: { ...page } }),
    halt: (target, options) => everywhere('POST', '/v1/halt', { body: { ...options, target } }),
    pause: async (target, paused) => void (await everywhere('POST', '/v1/pause', { body: { target, paused } })),
    requeue: (id) =>
      post<RequeueReceipt>(path`/v1/tasks/${id}/requeue`, {}).catch(
        toReceipt<RequeueReceipt>({ 404: 'not-found', 409: 'not-failed' }),
      ),
    erase: (target, options = {}) => everywhere('POST', '/v1/erase', { body: { ...target, ...options } }),
  };
}

interface Parts {
  readonly body?: object;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

function createSender({ url, token, fetch: own }: TaskClientOptions) {
  const base = url.replace(/\/+$/, '');
  return (method: string, path: string, { body, query = {}, headers, signal }: Parts): Promise<Response> => {
    const given = Object.entries(query).flatMap(([name, value]): [string, string][] =>
      value === undefined ? [] : [[name, `${value}`]],
    );
    const search = new URLSearchParams(given).toString();
    // Look the global up each time: applications replace it.
    return (own ?? globalThis.fetch)(`${base}${path}${search && `?${search}`}`, {
      method,
      // Don't follow redirects: the token must not go to another server.
      redirect: 'error',
      headers: {
        ...headers,
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(signal !== undefined && { signal }),
    });
  };
}

/** Converts refusals that are results of the store back to receipts. */
function toReceipt<Receipt>(answers: Readonly<Record<number, string | undefined>>): (error: unknown) => Receipt {
  return (error) => {
    if (!(error instanceof TaskApiError)) throw error;
    const { status, code, fields } = error;
    if (code === 'merged-inputs') return { result: code } as Receipt;
    if (code === 'full') return { result: code, ...fields } as Receipt;
    if (!(status in answers) || code === 'no-task-api' || code === 'unknown-route') throw error;
    const result = answers[status];
    return (result === undefined ? undefined : { result, ...fields }) as Receipt;
  };
}

/** Encodes the values in a path. */
function path(raw: TemplateStringsArray, ...values: readonly string[]): string {
  return String.raw({ raw }, ...values.map(encodeURIComponent));
}
