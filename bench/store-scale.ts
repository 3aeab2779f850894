// Every operation on a store with 1,000 tasks and on one with many, in turns:
// npm run bench -- store-scale [1000000] [redis] [postgres] [--json]
import { parseArgs } from 'node:util';
import { createTaskStore, type TaskStore } from '@whoa/tasks';
import { percentile, report } from './measure/measure.ts';
import type { BenchCase } from './stores/bare.ts';
import { cases } from './stores/cases.ts';
import { claimOne, createOne, OPERATIONS, repeat } from './stores/operations.ts';

const { positionals } = parseArgs({ options: { json: { type: 'boolean' } }, allowPositionals: true });
const FEW = 1_000;
const MANY = Number(positionals.find((word) => /^\d+$/.test(word)) ?? 100_000);
const SAMPLES = 1_000;
const WARM_UP = 200;
const CONCURRENCY = 64;
const TENANTS = 100;

/** Half of the tasks run, the others wait. */
async function fill(store: TaskStore, count: number, server: BenchCase): Promise<void> {
  const isCopied = server.copyTasks !== undefined && count > FEW;
  await make(store, isCopied ? FEW : count);
  if (isCopied) await server.copyTasks?.(count / FEW - 1);
}

async function make(store: TaskStore, count: number): Promise<void> {
  await repeat(count, CONCURRENCY, async (i) => {
    const id = await createOne(store, `tenant-${i % TENANTS}`);
    if (i % 2 === 0) await claimOne(store, id);
  });
}

type Operation = (index: number) => Promise<unknown>;

function operationsOn(store: TaskStore): [string, Operation][] {
  const ids: string[] = [];
  return [
    ['create', async () => ids.push(await createOne(store))],
    ...Object.entries(OPERATIONS).map(([name, operation]): [string, Operation] => [
      name,
      (i) => operation(store, ids[i]!),
    ]),
    ['list', (i) => store.list({ tenant: `tenant-${i % TENANTS}`, limit: 10 })],
    ['sweep', () => store.sweep({ limit: 10 })],
  ];
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const from = performance.now();
  await work();
  return performance.now() - from;
}

for (const start of cases) {
  await using small = await start();
  await using large = await start();
  await using few = createTaskStore(small.config);
  await using many = createTaskStore(large.config);
  await fill(few, FEW, small);
  const before = await large.memoryBytes();
  await fill(many, MANY, large);
  const bytesPerTask = Math.round(((await large.memoryBytes()) - before) / MANY);
  const onFew = operationsOn(few);
  for (const [index, [name, operation]] of operationsOn(many).entries()) {
    const samples = { ours: [] as number[], bare: [] as number[] };
    for (let i = 0; i < WARM_UP + SAMPLES; i++) {
      const [ours, bare] = [await timed(() => operation(i)), await timed(() => onFew[index]![1](i))];
      if (i < WARM_UP) continue;
      samples.ours.push(ours);
      samples.bare.push(bare);
    }
    report({
      name: `${large.name} ${name} at scale`,
      ours: percentile(samples.ours, 0.5),
      bare: percentile(samples.bare, 0.5),
      goal: { atMost: 1.2 },
      more: { unit: 'ms, median', few: FEW, many: MANY, bytesPerTask },
    });
  }
}
