import type { ListPage, TaskSummary } from '@whoa/tasks';
import { findQuestionTask, mapInBatches, type TenantPage } from '@whoa/tasks/internal';
import { MAX_QUESTIONS, type TaskSource } from './task-source.ts';

const TENANTS_AT_ONCE = 1_000;

interface Tenants {
  readonly list: (page: { readonly limit: number; readonly cursor?: string }) => Promise<TenantPage>;
  /** Opens the tasks of one tenant. */
  readonly open: (tenant: string) => TaskSource;
}

/** The tasks of every tenant, merged from one request per tenant. */
export function createAllTenantsSource({ list, open }: Tenants, any: TaskSource): TaskSource {
  /** The tenant of each task that was seen so far. */
  const known = new Map<string, string>();
  const readTenants = async (): Promise<readonly string[]> => {
    const all: string[] = [];
    for (let cursor: string | undefined; ; ) {
      const page = await list({ limit: TENANTS_AT_ONCE, ...(cursor !== undefined && { cursor }) });
      all.push(...page.tenants);
      cursor = page.next;
      if (cursor === undefined) return all;
    }
  };
  const findOwner = async (id: string): Promise<TaskSource | undefined> => {
    const tenant = known.get(id);
    if (tenant !== undefined) return open(tenant);
    const owners = await mapInBatches(await readTenants(), async (one) => {
      return (await open(one).get(id)) === undefined ? undefined : one;
    });
    const owner = owners.find((one) => one !== undefined);
    if (owner === undefined) return undefined;
    known.set(id, owner);
    return open(owner);
  };
  /** For an unknown id, use any tenant, so that the error comes from the store. */
  const findSource = async (id: string): Promise<TaskSource> => (await findOwner(id)) ?? any;

  return {
    ...any,
    get: async (id) => (await findOwner(id))?.get(id),
    async list(filter): Promise<ListPage> {
      const pages = await mapInBatches(await readTenants(), (tenant) => open(tenant).list(filter));
      const found = pages.flatMap(({ tasks }) => tasks).toSorted(newestFirst);
      const tasks = found.slice(0, filter.limit);
      for (const { id, tenant } of tasks) known.set(id, tenant);
      const last = tasks.at(-1);
      const isMore = found.length > tasks.length || pages.some(({ next }) => next !== undefined);
      return isMore && last !== undefined ? { tasks, next: `${last.createdAt}/${last.id}` } : { tasks };
    },
    async questions() {
      const pages = await mapInBatches(await readTenants(), async (tenant) => {
        const page = await open(tenant).questions();
        for (const { id } of page.questions) known.set(findQuestionTask(id) ?? '', tenant);
        return page;
      });
      const found = pages.flatMap(({ questions }) => questions).toSorted((a, b) => a.askedAt - b.askedAt);
      const isMore = found.length > MAX_QUESTIONS || pages.some(({ next }) => next !== undefined);
      return { questions: found.slice(0, MAX_QUESTIONS), ...(isMore && { next: 'more' }) };
    },
    counts: async () => (await mapInBatches(await readTenants(), (tenant) => open(tenant).counts())).flat(),
    cancel: async (id, request) => (await findSource(id)).cancel(id, request),
    cancelCall: async (id, callId, reason) => (await findSource(id)).cancelCall(id, callId, reason),
    answer: async (question, answer) => (await findSource(findQuestionTask(question) ?? '')).answer(question, answer),
    requeue: async (id) => (await findSource(id)).requeue(id),
    steer: async (id, message) => (await findSource(id)).steer(id, message),
    follow: async (id, options) => (await findSource(id)).follow(id, options),
    settleOrphaned: async (task) => open(task.tenant).settleOrphaned(task),
  };
}

/** The order in which every store lists. */
function newestFirst(a: TaskSummary, b: TaskSummary): number {
  return b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1);
}
