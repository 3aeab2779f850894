import type { PauseTarget, Queue, WorkersSnapshot } from '../../../overview.ts';
import { byStatus, STATUS_TABLE, type TaskStatus } from '../../../status.ts';
import type { QueuesSnapshot } from '../../driver.ts';
import type { Reply } from '../connection/connection.ts';

const STATUSES = Object.keys(STATUS_TABLE);

/** Adds up the counts of all shards. */
export function toCounts(replies: readonly Reply[], limit: number): Readonly<Record<TaskStatus, number>> {
  return byStatus((status) => {
    const index = STATUSES.indexOf(status);
    const all = replies.reduce<number>((sum, reply) => sum + Number((reply as readonly Reply[])[index]), 0);
    return Math.min(all, limit);
  });
}

/** Merges the first names of all shards. */
export function toNames(replies: readonly Reply[], limit: number): readonly string[] {
  const names = new Set(replies.flatMap((reply) => reply as readonly string[]));
  return [...names].toSorted(compareBytes).slice(0, limit);
}

/** Adds up the queues of all shards, each of which has them in the order of their names. */
export function toQueues(replies: readonly Reply[], limit: number): QueuesSnapshot {
  type Counts = readonly string[];
  type Shard = readonly [readonly Counts[], paused: readonly string[], now: string, running: Counts, waiting: Counts];
  const shards = replies as unknown as readonly Shard[];
  const queues = new Map<string, Queue>();
  for (const [agent = '', tenant = '', ready, oldest] of shards.flatMap(([found]) => found)) {
    const name = `${Buffer.byteLength(agent)}:${agent}:${tenant}`;
    const known = queues.get(name) ?? { agent, tenant, ready: 0, oldestReadyAt: Infinity };
    const oldestReadyAt = Math.min(known.oldestReadyAt, Number(oldest));
    queues.set(name, { ...known, ready: known.ready + Number(ready), oldestReadyAt });
  }
  const paused = new Set(shards.flatMap(([, names]) => names));
  const running: Record<string, number> = {};
  const waiting: Record<string, number> = {};
  for (const [, , , held, parked] of shards) {
    for (const [agent, count] of toPairs(held)) if (count > 0) running[agent] = (running[agent] ?? 0) + count;
    // A worker waits in every shard.
    for (const [agent, count] of toPairs(parked)) waiting[agent] = Math.max(waiting[agent] ?? 0, count);
  }
  return {
    queues: [...queues]
      .toSorted(([a], [b]) => compareBytes(a, b))
      .slice(0, limit)
      .map(([, queue]) => queue),
    running,
    waiting,
    paused: [...paused].toSorted(compareBytes).slice(0, limit).map(toPauseTarget),
    now: Math.max(...shards.map(([, , now]) => Number(now))),
  };
}

function toPairs(flat: readonly string[]): [string, number][] {
  return flat.flatMap((name, i) => (i % 2 === 0 ? [[name, Number(flat[i + 1])]] : []));
}

function toPauseTarget(text: string): PauseTarget {
  const [, kind = '', name = ''] = /^(agent|tenant):(.*)$/s.exec(text) ?? [];
  return kind === 'agent' ? { agent: name } : { tenant: name };
}

function compareBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

export function toWorkers(replies: readonly Reply[]): WorkersSnapshot {
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
