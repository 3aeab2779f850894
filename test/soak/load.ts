// What users do to a fleet, and a check of every response.
import { setTimeout as wait } from 'node:timers/promises';
import { createTaskClient, type TaskClient } from '@whoa/server/task-client';
import { isFinalStatus, type TaskRecord } from '@whoa/tasks';
import type { Fleet } from './fleet.ts';

/** What the load saw. */
export interface LoadReport {
  created: number;
  followed: number;
  cancelled: number;
  readonly ends: Record<string, number>;
  readonly violations: string[];
}

const CANCELLED_SHARE = 0.3;
const FOLLOWED_SHARE = 0.3;
const DOUBLED_SHARE = 0.1;
const MAX_END_MS = 120_000;

/** Starts tasks at a rate until it is stopped, then waits for those that are still running. */
export async function runLoad(
  { urls, token }: Pick<Fleet, 'urls' | 'token'>,
  { perSecond, signal }: { readonly perSecond: number; readonly signal: AbortSignal },
): Promise<LoadReport> {
  const clients = urls.map((url) => createTaskClient({ url, token }));
  const report: LoadReport = { created: 0, followed: 0, cancelled: 0, ends: {}, violations: [] };
  const running = new Set<Promise<void>>();
  for (let number = 0; !signal.aborted; number++) {
    const run = runTask(number, clients, report).catch((error: unknown) => {
      report.violations.push(`task ${number}: ${String(error)}`);
    });
    running.add(run);
    run.finally(() => running.delete(run)).catch(() => {});
    await wait(1_000 / perSecond, undefined, { signal }).catch(() => {});
  }
  await Promise.all(running);
  return report;
}

async function runTask(number: number, clients: readonly TaskClient[], report: LoadReport): Promise<void> {
  const client = clients[number % clients.length]!;
  const other = clients[(number + 1) % clients.length]!;
  const key = `soak-${process.pid}-${number}`;
  const task = { agent: 'sleeper', input: `task ${number}`, key };
  const receipt = await client.create(task);
  if (receipt.result !== 'created') throw new Error(`create: ${receipt.result}`);
  const { id } = receipt.task;
  report.created++;
  if (Math.random() < DOUBLED_SHARE) {
    const again = await other.create(task);
    if (again.result !== 'duplicate' || again.task.id !== id) throw new Error(`created twice: ${again.result}`);
  }
  const isCancelled = Math.random() < CANCELLED_SHARE;
  const ending = Math.random() < FOLLOWED_SHARE ? follow(id, other, report) : waitForEnd(id, client);
  if (isCancelled) {
    await wait(1_500 * Math.random());
    const { result } = await other.cancel(id, { mode: 'now' });
    const end = await ending;
    if (result === 'accepted') report.cancelled++;
    if (result === 'accepted' && end.status !== 'cancelled') throw new Error(`cancelled, and ended ${end.status}`);
    if (result !== 'accepted' && result !== 'too-late') throw new Error(`cancel: ${result}`);
  }
  const { status, outcome } = await ending;
  report.ends[status] = (report.ends[status] ?? 0) + 1;
  if (status === 'failed') throw new Error(`failed: ${outcome?.error?.message}`);
}

/** Every entry once and in order, then one end. */
async function follow(id: string, client: TaskClient, report: LoadReport): Promise<TaskRecord> {
  let last = 0;
  report.followed++;
  for await (const seen of client.follow(id, { signal: AbortSignal.timeout(MAX_END_MS) })) {
    if (seen.type === 'end') return seen.task;
    if (seen.type !== 'entry') continue;
    if (seen.position <= last) throw new Error(`entry ${seen.position} after ${last}`);
    last = seen.position;
  }
  throw new Error('its events ended without an end');
}

async function waitForEnd(id: string, client: TaskClient): Promise<TaskRecord> {
  for (const until = performance.now() + MAX_END_MS; performance.now() < until; await wait(500)) {
    const task = await client.get(id);
    if (task === undefined) throw new Error('it is gone');
    if (isFinalStatus(task.status)) return task;
  }
  throw new Error(`it did not end within ${MAX_END_MS} ms`);
}
