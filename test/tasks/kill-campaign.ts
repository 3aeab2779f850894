import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { TaskRecord, TaskStore } from '@whoa/tasks';
import { type Child, startChild, temporaryFolder } from './child.ts';
import { openStore } from './open-store.ts';
import type { SharedStoreKind } from './shared-stores.ts';

export interface KillReport {
  readonly kills: number;
  readonly tasks: number;
  readonly crashedTasks: number;
  readonly cancelsAccepted: number;
  readonly appendsAcknowledged: number;
  readonly neverCalls: number;
  readonly safeCallsRepeated: number;
  readonly unknownResults: number;
  readonly ends: Record<string, number>;
  readonly violations: readonly string[];
}

/** Kills workers at random moments and checks at the end that no acknowledged write was lost or done twice. */
export async function runKillCampaign(
  kind: SharedStoreKind,
  { kills, random }: { kills: number; random: () => number },
): Promise<KillReport> {
  using folder = temporaryFolder();
  await using shared = await kind.open();
  await using store = openStore(shared.location, { maxAttempts: 10_000 });
  const tasks = new Map<string, { cancelled: boolean }>();
  const start = (): Child => startChild('mortal-worker', [shared.location, folder.path, `${TURNS}`]);
  let workers = [start(), start()];
  try {
    for (let killed = 0; killed < kills; killed++) {
      for (let i = 0; i < 2; i++) await create(store, tasks);
      const victim = Math.floor(random() * workers.length);
      await workers[victim]!.hear<{ type: string }>(({ type }) => type === 'serving');
      await wait(random() * 120);
      if (random() < 0.4) await cancelOne(store, tasks, random);
      workers[victim]!.process.kill('SIGKILL');
      await workers[victim]!.ended;
      workers = workers.with(victim, start());
    }
    await allEnded(store, tasks);
    // A worker that is still starting would miss the signal.
    await Promise.all(workers.map((worker) => worker.hear<{ type: string }>(({ type }) => type === 'serving')));
    for (const worker of workers) worker.process.send('stop');
    await Promise.all(workers.map(({ ended }) => ended));
  } finally {
    await Promise.all(workers.map((worker) => worker[Symbol.asyncDispose]()));
  }
  return { kills, ...(await judge(store, tasks, folder.path)) };
}

const TURNS = 6;

async function create(store: TaskStore, tasks: Map<string, { cancelled: boolean }>): Promise<void> {
  const receipt = await store.create({ tenant: 'kill', agent: 'assistant', input: `task-${tasks.size}` });
  tasks.set((receipt as { task: TaskRecord }).task.id, { cancelled: false });
}

async function cancelOne(store: TaskStore, tasks: Map<string, { cancelled: boolean }>, random: () => number) {
  const recent = [...tasks.keys()].slice(-4);
  const id = recent[Math.floor(random() * recent.length)]!;
  const { result } = await store.cancel({ tenant: 'kill', id }, { by: 'campaign' });
  if (result === 'accepted') tasks.set(id, { cancelled: true });
}

async function allEnded(store: TaskStore, tasks: ReadonlyMap<string, unknown>): Promise<void> {
  for (const id of tasks.keys()) {
    for (;;) {
      const record = await store.get({ tenant: 'kill', id });
      if (record?.endedAt !== undefined) break;
      await wait(20);
    }
  }
}

function readLines(folder: string, name: string): string[][] {
  const path = join(folder, name);
  if (!existsSync(path)) return [];
  const lines = readFileSync(path, 'utf8').split('\n');
  return lines.slice(0, -1).map((line) => line.split(' '));
}

async function judge(store: TaskStore, tasks: ReadonlyMap<string, { cancelled: boolean }>, folder: string) {
  const violations: string[] = [];
  const ends: Record<string, number> = {};
  const counts = { crashedTasks: 0, unknownResults: 0 };
  const acknowledged = readLines(folder, 'appends.log');
  for (const [id, { cancelled }] of tasks) {
    const record = (await store.get({ tenant: 'kill', id }))!;
    ends[record.status] = (ends[record.status] ?? 0) + 1;
    if (record.epoch > 1) counts.crashedTasks++;
    if (cancelled && record.status !== 'cancelled') violations.push(`${id}: cancel accepted, ended ${record.status}`);
    if (!cancelled && record.status !== 'success') violations.push(`${id}: not cancelled, ended ${record.status}`);
    const journal = await store.read({ tenant: 'kill', id });
    if (journal.some(({ position }, i) => position !== i + 1)) violations.push(`${id}: the journal has a gap`);
    counts.unknownResults += journal.filter(({ event }) => JSON.stringify(event).includes('"state":"unknown"')).length;
    const last = Math.max(0, ...acknowledged.filter(([task]) => task === id).map(([, , position]) => Number(position)));
    if (journal.length < last) violations.push(`${id}: ${last} entries acknowledged, ${journal.length} there`);
  }
  const started = new Map<string, number>();
  for (const [replay, task, call, phase] of readLines(folder, 'effects.log')) {
    if (phase === 'begin')
      started.set(`${replay} ${task} ${call}`, (started.get(`${replay} ${task} ${call}`) ?? 0) + 1);
  }
  const never = [...started].filter(([key]) => key.startsWith('never'));
  for (const [key, times] of never) if (times > 1) violations.push(`${key} began ${times} times`);
  const safeCallsRepeated = [...started].filter(([key, times]) => key.startsWith('safe') && times > 1).length;
  return {
    tasks: tasks.size,
    ...counts,
    cancelsAccepted: [...tasks.values()].filter(({ cancelled }) => cancelled).length,
    appendsAcknowledged: acknowledged.length,
    neverCalls: never.length,
    safeCallsRepeated,
    ends,
    violations,
  };
}
