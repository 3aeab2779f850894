import { setTimeout as wait } from 'node:timers/promises';
import { createRunner, createTaskStore, type TaskSummary } from '@whoa/tasks';
import { startPostgres } from '../servers/postgres.ts';

export interface OutageReport {
  readonly outages: number;
  /** Status, attempts and deaths of each task, and how many tasks have them, after each outage. */
  readonly seen: readonly Readonly<Record<string, number>>[];
}

const TENANT = 'outage';
const TASKS = 20;
const LEASE_MS = 1_000;
const OUTAGE_MS = 3_500;

/** Stops a Postgres server repeatedly for longer than a lease, while a worker is alive and its tasks wait. */
export async function runOutageCampaign({ outages }: { readonly outages: number }): Promise<OutageReport> {
  await using server = await startPostgres();
  await using store = createTaskStore(server.url);
  await using runner = createRunner({
    store,
    leaseMs: LEASE_MS,
    pollIntervalMs: 200,
    agents: {
      waits: ({ signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
        }),
    },
  });
  await runner.serve({ concurrency: 2 * TASKS });
  for (let i = 0; i < TASKS; i++) await store.create({ tenant: TENANT, agent: 'waits', input: i });
  /** Returns the tasks once the worker holds all of them, or one has failed. Reads them once: it may release them again. */
  const waitUntilBack = async (): Promise<readonly TaskSummary[]> => {
    for (;;) {
      await wait(50);
      const isWhole = runner.live === TASKS;
      const { tasks } = await store.list({ tenant: TENANT });
      if ((isWhole && tasks.every(({ stage }) => stage === 'held')) || tasks.some(({ status }) => status === 'failed'))
        return tasks;
    }
  };
  await waitUntilBack();
  const seen: Record<string, number>[] = [];
  for (let i = 0; i < outages; i++) {
    await server.pause();
    try {
      await wait(OUTAGE_MS);
    } finally {
      await server.resume();
    }
    const counts: Record<string, number> = {};
    for (const { status, attempts, crashes } of await waitUntilBack()) {
      const state = `${status}, attempts ${attempts}, deaths ${crashes}`;
      counts[state] = (counts[state] ?? 0) + 1;
    }
    seen.push(counts);
  }
  return { outages, seen };
}
