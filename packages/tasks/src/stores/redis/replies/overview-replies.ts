import type { SeenWorkers } from '../../../overview.ts';
import { byStatus, STATUS_TABLE, type TaskStatus } from '../../../status.ts';
import type { Reply } from '../connection/connection.ts';

const STATUSES = Object.keys(STATUS_TABLE);

/** Adds up the counts of all shards. */
export function countsOf(replies: readonly Reply[], limit: number): Readonly<Record<TaskStatus, number>> {
  return byStatus((status) => {
    const index = STATUSES.indexOf(status);
    const all = replies.reduce<number>((sum, reply) => sum + Number((reply as readonly Reply[])[index]), 0);
    return Math.min(all, limit);
  });
}

/** Merges the first names of all shards. */
export function tenantsOf(replies: readonly Reply[], limit: number): readonly string[] {
  const names = new Set(replies.flatMap((reply) => reply as readonly string[]));
  const sorted = [...names].toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  return sorted.slice(0, limit);
}

export function workersOf(replies: readonly Reply[]): SeenWorkers {
  type Session = readonly [worker: string, holds: string, expiresAt: string, tasks: readonly string[]];
  type Shard = readonly [sessions: readonly Session[], waiters: readonly (readonly [string, string])[], now: string];
  const shards = replies as unknown as readonly Shard[];
  return {
    sessions: shards.flatMap(([sessions]) =>
      sessions.map(([worker, holds, expiresAt, tasks]) => {
        return { worker, holds: Number(holds), expiresAt: Number(expiresAt), tasks };
      }),
    ),
    waiters: shards.flatMap(([, waiters]) =>
      waiters.map(([worker, agents]) => ({ worker, agents: JSON.parse(agents) as string[] })),
    ),
    now: Math.max(...shards.map(([, , now]) => Number(now))),
  };
}
