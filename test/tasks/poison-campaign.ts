import { setTimeout as wait } from 'node:timers/promises';
import type { TaskStore, TaskSummary } from '@whoa/tasks';
import { LIMITS } from '../../packages/tasks/src/ledger/rules/rules.ts';
import { type Child, startChild } from './child.ts';
import { openStore } from './open-store.ts';
import type { SharedStoreKind } from './shared-stores.ts';

export interface PoisonReport {
  readonly seconds: number;
  /** How many workers the poison tasks killed. */
  readonly kills: number;
  readonly harmless: Readonly<Record<string, number>>;
  /** How often each poison task crashed its workers. */
  readonly crashes: readonly number[];
  readonly violations: readonly string[];
}

const TENANT = 'poison';
const WORKERS = 3;
const HARMLESS = 60;
const CONCURRENCY = 30;
const LEASE_MS = 1_000;
const WORK_MS = 1_000;
/** Two crashes make a task a suspect, three more are charged. */
const MIN_DEATHS = LIMITS.suspectAttempts + 3;

/** Runs harmless tasks next to tasks that kill their worker, on workers that are restarted. */
export async function runPoisonCampaign(
  kind: SharedStoreKind,
  { poisons }: { readonly poisons: number },
): Promise<PoisonReport> {
  await using shared = await kind.open();
  await using store = openStore(shared.location);
  const fleet = new Fleet(shared.location);
  const startedAt = Date.now();
  try {
    await fleet.serving();
    for (let i = 0; i < HARMLESS; i++) await store.create({ tenant: TENANT, agent: 'harmless', input: i });
    for (let i = 0; i < poisons; i++) {
      if (i > 0) await fleet.killed(i);
      await store.create({ tenant: TENANT, agent: 'poison', input: i });
    }
    const tasks = await allEnded(store);
    return { seconds: (Date.now() - startedAt) / 1_000, kills: fleet.kills, ...judge(tasks) };
  } finally {
    await fleet.stop();
  }
}

/** Workers that are restarted whenever one ends. */
class Fleet {
  kills = 0;
  readonly #location: string;
  readonly #workers: Child[];
  #isStopping = false;

  constructor(location: string) {
    this.#location = location;
    this.#workers = Array.from({ length: WORKERS }, () => this.#start());
  }

  async serving(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.hear<{ type: string }>(({ type }) => type === 'serving')));
  }

  async killed(count: number): Promise<void> {
    while (this.kills < count) await wait(20);
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all(this.#workers.map((worker) => worker[Symbol.asyncDispose]()));
  }

  #start(): Child {
    const args = [LEASE_MS, WORK_MS, CONCURRENCY].map(String);
    const worker = startChild('poison-worker', [this.#location, ...args]);
    worker.process.once('exit', () => {
      if (this.#isStopping) return;
      this.kills++;
      this.#workers[this.#workers.indexOf(worker)] = this.#start();
    });
    return worker;
  }
}

async function allEnded(store: TaskStore): Promise<readonly TaskSummary[]> {
  for (;;) {
    const { tasks } = await store.list({ tenant: TENANT, limit: 1_000 });
    if (tasks.every(({ endedAt }) => endedAt !== undefined)) return tasks;
    await wait(100);
  }
}

function judge(tasks: readonly TaskSummary[]): Pick<PoisonReport, 'harmless' | 'crashes' | 'violations'> {
  const harmless: Record<string, number> = {};
  const crashes: number[] = [];
  const violations: string[] = [];
  for (const task of tasks) {
    const { agent, status, outcome } = task;
    if (agent === 'harmless') {
      harmless[status] = (harmless[status] ?? 0) + 1;
      if (status !== 'success') violations.push(`a harmless task ended '${status}': ${outcome?.error?.message}`);
      continue;
    }
    crashes.push(task.crashes);
    if (outcome?.error?.code !== 'WORKERS_LOST') violations.push(`a poison task ended '${status}'`);
    if (task.crashes < MIN_DEATHS) violations.push(`a poison task failed after ${task.crashes} crashes`);
  }
  return { harmless, crashes, violations };
}
