import type { ListPage, TaskCounts, TaskStatus, TaskStore, TaskSummary } from '@whoa/tasks';
import { HttpError } from '../http/http-error.ts';
import { STATUSES } from '../http/schemas.ts';

/** What operators give as `tenant` to read the tasks of all tenants. */
export const ALL_TENANTS = '*';
/** Each tenant is one read, and pages repeat them every second. */
const MAX_TENANTS = 50;

/** Reads something of every tenant. */
export async function readAll<Part>(store: TaskStore, read: (tenant: string) => Promise<Part>): Promise<Part[]> {
  const { tenants, next } = await store.tenants({ limit: MAX_TENANTS });
  if (next === undefined) return Promise.all(tenants.map(read));
  const message = `There are more than ${MAX_TENANTS} tenants; choose one`;
  throw new HttpError(400, { code: 'too-many-tenants', message });
}

/** Merges pages that were read with one cursor. Newest first, as in each of them. */
export function mergePages(pages: readonly ListPage[], limit: number): ListPage {
  const all = pages.flatMap(({ tasks }) => tasks).sort(newestFirst);
  const tasks = all.slice(0, limit);
  const hasMore = all.length > limit || pages.some(({ next }) => next !== undefined);
  const last = tasks.at(-1);
  return { tasks, ...(hasMore && last && { next: `${last.createdAt}/${last.id}` }) };
}

export function addCounts(all: readonly TaskCounts[]): TaskCounts {
  const sum = (status: TaskStatus): number => all.reduce((total, { statuses }) => total + statuses[status], 0);
  const statuses = Object.fromEntries(STATUSES.map((status) => [status, sum(status)])) as TaskCounts['statuses'];
  return { tenant: ALL_TENANTS, statuses, limit: Math.max(0, ...all.map(({ limit }) => limit)) };
}

function newestFirst(a: TaskSummary, b: TaskSummary): number {
  return b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1);
}
