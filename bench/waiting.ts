// The cost of tasks that only wait, few and many, and of an idle worker:
// npm run bench -- waiting [2000 20000] [--json]
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createTaskStore } from '@whoa/tasks';
import { report } from './measure/measure.ts';
import type { BenchCase } from './stores/bare.ts';
import { startPostgresCase } from './stores/postgres.ts';
import { createWaiting, WaitingWorker } from './stores/worker.ts';

const { positionals } = parseArgs({ options: { json: { type: 'boolean' } }, allowPositionals: true });
const [FEW = 2_000, MANY = 20_000] = positionals.map(Number).filter((count) => !Number.isNaN(count));
const WINDOW_MS = 20_000;
/** How long the work after starting the tasks may take. */
const QUIET_MS = 3_000;

interface Usage {
  readonly commands: number;
  readonly logBytes: number;
  readonly cpuMs: number;
  readonly workerMs: number;
}

await using one = await startPostgresCase();
await using store = createTaskStore(one.config);
// Connects, and creates the schema if needed.
await store.list({ tenant: 'bench', limit: 1 });
const unused = await measureUsage(one);
await using worker = await WaitingWorker.start(one.config, MANY);
const idle = await measureUsage(one, worker);
reportIdle(one.name, { ...idle, commands: idle.commands - unused.commands });
const holding = async (count: number, created: number): Promise<Usage> => {
  await createWaiting(store, count - created);
  await worker.has(count);
  return measureUsage(one, worker);
};
const few = await holding(FEW, 0);
// One slot stays free: a full worker would not ask for more, and so seem to cost less.
const many = await holding(MANY - 1, FEW);
for (const field of ['commands', 'logBytes', 'cpuMs'] as const) {
  const more = { few: FEW, many: MANY, windowMs: WINDOW_MS };
  // Two small numbers: one more than the other is no growth.
  const [ours, bare] = [many[field] + 1, few[field] + 1];
  report({ name: `waiting ${one.name} ${field}`, ours, bare, goal: { atMost: 1.1 }, more });
}
const more = { unit: '% of a core', tasks: MANY, withoutTasks: toPercent(unused.cpuMs) };
const ours = toPercent(many.cpuMs);
report({ name: `waiting ${one.name} server CPU`, ours, bare: 1, goal: { atMost: 1 }, more });

async function measureUsage(one: BenchCase, worker?: WaitingWorker): Promise<Usage> {
  await wait(QUIET_MS);
  // The cleanup after starting the tasks is not part of their waiting.
  await one.tidy?.();
  await wait(QUIET_MS);
  const read = async (): Promise<Usage> => ({
    commands: await one.commands(),
    logBytes: await one.logBytes(),
    cpuMs: (await one.cpuSeconds()) * 1_000,
    workerMs: (await worker?.report())?.cpuMs ?? 0,
  });
  const before = await read();
  await wait(WINDOW_MS);
  const after = await read();
  return {
    commands: after.commands - before.commands,
    logBytes: after.logBytes - before.logBytes,
    cpuMs: after.cpuMs - before.cpuMs,
    workerMs: after.workerMs - before.workerMs,
  };
}

function reportIdle(name: string, { commands, workerMs }: Pick<Usage, 'commands' | 'workerMs'>): void {
  const perSecond = (commands * 1_000) / WINDOW_MS;
  const unit = 'commands/s';
  report({ name: `idle worker ${name}`, ours: perSecond, bare: 1, goal: { atMost: 1 }, more: { unit } });
  const more = { unit: '% of a core' };
  report({ name: `idle worker ${name} CPU`, ours: toPercent(workerMs), bare: 2, goal: { atMost: 1 }, more });
}

function toPercent(cpuMs: number): number {
  return (cpuMs / WINDOW_MS) * 100;
}
