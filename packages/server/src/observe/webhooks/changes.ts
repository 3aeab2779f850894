import { isFinalStatus, type Question, type TaskRecord, type TaskStore, type TaskSummary } from '@whoa/tasks';
import { type FeedEvent, readPages } from '@whoa/tasks/internal';

type TaskEnd = 'success' | 'failed' | 'cancelled';
/** `question.closed`: no one answered it. */
type QuestionEvent = 'question.asked' | 'question.answered' | 'question.closed';
type PauseEvent = 'pause.started' | 'pause.ended';

/** What can be reported. */
export type WebhookEvent = TaskEnd | QuestionEvent | PauseEvent;

export const ENDS: readonly TaskEnd[] = ['success', 'failed', 'cancelled'];
export const QUESTION_EVENTS: readonly QuestionEvent[] = ['question.asked', 'question.answered', 'question.closed'];
export const PAUSE_EVENTS: readonly PauseEvent[] = ['pause.started', 'pause.ended'];

/** A change as it is reported. */
export interface Change {
  readonly event: WebhookEvent;
  /** Names the change, however it was found. A task's key may be used again: its end has a time. */
  readonly change: string;
  /** Without dots: it is signed between them. */
  readonly id: string;
  readonly task?: string;
  readonly body: string;
}

/** When changes may have been missed: how many tasks of each tenant are looked at, unless it was for long. */
const MAX_PER_TENANT = 500;
const SHORT_MS = 2 * 3_600_000;

export function toKinds(events: readonly WebhookEvent[]): readonly FeedEvent['kind'][] {
  const kinds = events.map((event): FeedEvent['kind'] => (isEnd(event) ? 'task.ended' : event));
  return [...new Set(kinds)];
}

/** Returns what a change is reported as; `undefined` if what it is about is gone. */
export async function toChange(store: TaskStore, event: FeedEvent): Promise<Change | undefined> {
  const { id, kind, tenant, task: taskId, at, agent } = event;
  if (taskId === undefined) {
    if (kind !== 'pause.started' && kind !== 'pause.ended') return undefined;
    const data = agent === undefined ? { tenant } : { agent };
    return { event: kind, change: id, id, body: toBody(kind, at, data) };
  }
  const task = await store.get({ tenant, id: taskId });
  if (task === undefined) return undefined;
  if (kind === 'task.ended') return toEnd(task);
  return toQuestionChanges(task).find((one) => one.event === kind && one.change.startsWith(`${event.question}/`));
}

/** Looks through the store for what happened since a time. */
export async function lookAround(
  store: TaskStore,
  { since, events, plan }: { since: number; events: readonly WebhookEvent[]; plan: (change: Change) => Promise<void> },
): Promise<void> {
  const { now } = await store.queues({ limit: 1 });
  const most = now - since > SHORT_MS ? Infinity : MAX_PER_TENANT;
  for await (const { tenants } of readPages((cursor) => store.tenants({ cursor }))) {
    for (const tenant of tenants.filter((name) => !name.startsWith('whoa.'))) {
      let read = 0;
      for await (const { tasks } of readPages((cursor) => store.list({ tenant, cursor }))) {
        const recent = tasks.filter(({ endedAt = Infinity }) => endedAt >= since);
        for (const task of recent)
          for (const one of await toChanges(store, task)) if (events.includes(one.event)) await plan(one);
        if ((read += tasks.length) >= most) break;
      }
    }
  }
}

async function toChanges(store: TaskStore, task: TaskSummary): Promise<readonly Change[]> {
  const record = task.hasAsked === true ? await store.get(task) : undefined;
  return [...(record === undefined ? [] : toQuestionChanges(record)), toEnd(task) ?? []].flat();
}

/** Without the answer, which may be long or private: the receiver reads the task if it needs more. */
function toEnd(task: TaskSummary): Change | undefined {
  const { id, tenant, agent, conversation, key, status, createdAt, startedAt, endedAt = 0, outcome } = task;
  if (!isFinalStatus(status)) return undefined;
  const { reason, error, usage } = outcome ?? {};
  const data = { id, tenant, agent, conversation, key, status, createdAt, startedAt, endedAt, reason, error, usage };
  return { event: status, change: `${id}@${endedAt}`, id, task: id, body: toBody(`task.${status}`, endedAt, data) };
}

/** What can be reported about the questions of a task now. */
function toQuestionChanges(task: TaskRecord): readonly Change[] {
  return (task.questions ?? []).flatMap((question) => {
    const { answer, closed } = question;
    const asked = toQuestionChange(task, question, { type: 'question.asked', at: question.askedAt });
    if (answer !== undefined) {
      const { by, at } = answer;
      return [asked, toQuestionChange(task, question, { type: 'question.answered', at, by, answeredAt: at })];
    }
    if (closed === undefined) return [asked];
    const { why, at } = closed;
    return [asked, toQuestionChange(task, question, { type: 'question.closed', at, why, closedAt: at })];
  });
}

/** Without what was shown and answered, which may be private: the receiver reads the task if it needs more. */
function toQuestionChange(
  { id: task, tenant, agent, conversation, startedBy }: TaskRecord,
  { id, callId, kind, askedAt, expiresAt }: Question,
  { type, at, ...more }: { readonly type: QuestionEvent; readonly at: number; readonly [more: string]: unknown },
): Change {
  const data = { id, task, tenant, agent, conversation, startedBy, callId, kind, askedAt, expiresAt, ...more };
  const change = `${id}/${type}`;
  return { event: type, change, id: change.replaceAll('.', '/'), task, body: toBody(type, at, data) };
}

function toBody(type: string, at: number, data: object): string {
  return JSON.stringify({ type, timestamp: new Date(at).toISOString(), data });
}

const isEnd = (event: WebhookEvent): event is TaskEnd => ENDS.some((end) => end === event);
