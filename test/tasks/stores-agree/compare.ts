import type { ConversationRecord, TaskRecord, TaskStore, TaskSummary } from '@whoa/tasks';
import { TENANTS } from './made.ts';

/** Lists whose order is up to the store. */
const UNORDERED = new Set(['queues', 'paused', 'orders', 'held']);

/** Serializes a value so that equal values give equal text: fields sorted, without those that are `undefined`. */
export function canonical(value: unknown, field = ''): string {
  if (Array.isArray(value)) {
    const items = value.map((item) => canonical(item));
    return `[${(UNORDERED.has(field) ? items.toSorted() : items).join(',')}]`;
  }
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? '"undefined"';
  const fields = Object.entries(value).filter(([, one]) => one !== undefined);
  return `{${fields
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, one]) => `${JSON.stringify(name)}:${canonical(one, name)}`)
    .join(',')}}`;
}

/** Runs a request. An error counts as a result: its code. */
export async function toResult(request: Promise<unknown>): Promise<unknown> {
  try {
    return await request;
  } catch (error) {
    return { throws: (error as { code?: string }).code ?? String(error) };
  }
}

export interface Known {
  readonly tasks: readonly TaskSummary[];
  readonly keys: readonly string[];
  readonly sessions: readonly string[];
  readonly hasGoneBack: boolean;
}

/** Reads every task and conversation of some tenants, as after each step. */
export function look(store: TaskStore, tenants: readonly string[]): Promise<readonly View[]> {
  return Promise.all(
    tenants.map(async (tenant) => {
      const [{ tasks }, conversation] = await Promise.all([
        store.list({ tenant, limit: 100 }),
        store.conversation({ tenant, conversation: 'c' }),
      ]);
      return { tasks, conversation };
    }),
  );
}

export interface View {
  readonly tasks: readonly TaskSummary[];
  readonly conversation: ConversationRecord | undefined;
}

/** Reads everything else: inputs, journals, and the operators' views. */
export async function lookClosely(store: TaskStore, { tasks, keys, sessions, hasGoneBack }: Known): Promise<unknown> {
  const written = tasks.filter(({ position }) => position > 0);
  const [tenant = ''] = TENANTS;
  // First, and one after the other: reading a task applies what is due, which may change the next one.
  const records: (TaskRecord | undefined)[] = [];
  for (const task of tasks) records.push(await store.get(task));
  const [journals, found, held, counts, names, questions] = await Promise.all([
    Promise.all(written.map((task) => store.read(task))),
    Promise.all(keys.map((key) => store.find({ tenant, key }))),
    Promise.all(sessions.map(async (session) => ({ held: await store.held({ session }) }))),
    Promise.all(TENANTS.map((name) => store.counts({ tenant: name }))),
    Promise.all(TENANTS.map((name) => store.conversations({ tenant: name }))),
    Promise.all(TENANTS.map((name) => store.questions({ tenant: name, limit: 3 }))),
  ]);
  const [queues, workers, tenants] = await Promise.all([store.queues(), store.workers(), store.tenants()]);
  // Until when a worker counts as waiting is up to the store; see `wakeups.ts`.
  const busy = workers.workers.filter(({ holds }) => holds > 0);
  const shown = busy.map(({ waitsFor: _waitsFor, tasks: ids, ...rest }) => ({ ...rest, tasks: ids.toSorted() }));
  const running = Object.fromEntries(Object.entries(queues.running).filter(([, number]) => number > 0));
  // Memory keeps ready tasks in the order in which they became ready, even if the clock was set back.
  const waiting = hasGoneBack ? queues.queues.map(({ oldestReadyAt: _oldestAt, ...queue }) => queue) : queues.queues;
  const seen = { ...queues, queues: waiting, running, waiting: undefined, workers: shown };
  return { records, journals, found, held, counts, names, questions, tenants, ...seen };
}
