import type { TaskStatus } from '../../status.ts';
import type { ListFilter } from '../../store.ts';
import type { TaskRecord } from '../../task.ts';

/** The narrowest index that holds everything wanted. */
export function indexOf({
  tenant,
  status,
  conversation,
}: Pick<ListFilter, 'tenant'> & { status: TaskStatus | undefined; conversation: string | undefined }): string {
  if (conversation !== undefined) return `said:${Buffer.byteLength(tenant)}:${tenant}:${conversation}`;
  return status === undefined ? `tenant:${tenant}` : `status:${status}:${tenant}`;
}

export function pairsOf(flat: readonly string[]): [string, number][] {
  return Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i]!, Number(flat[2 * i + 1])]);
}

export function newestFirst(a: TaskRecord, b: TaskRecord): number {
  return b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1);
}
