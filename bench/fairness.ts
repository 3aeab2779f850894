// One tenant has a long queue; how many of its tasks start before the one task of another tenant does:
// npm run bench -- fairness [100000] [--json]
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createRunner, createTaskStore } from '@whoa/tasks';
import { percentile, report } from './measure/measure.ts';
import { repeat } from './stores/operations.ts';
import { startPostgresCase } from './stores/postgres.ts';

const { positionals } = parseArgs({ options: { json: { type: 'boolean' } }, allowPositionals: true });
const WAITING = Number(positionals.find((word) => /^\d+$/.test(word)) ?? 100_000);
const SLOTS = 50;
const WORK_MS = 10;
const SAMPLES = 50;
/** The next two rounds of the worker. */
const MAX_BEFORE = 2 * SLOTS;

await using one = await startPostgresCase();
await using store = createTaskStore(one.config);
const create = async (tenant: string): Promise<string> => {
  const receipt = await store.create({ tenant, agent: 'works', input: 'x' });
  if (receipt.result !== 'created') throw new Error(`create: ${receipt.result}`);
  return receipt.task.id;
};
await repeat(WAITING, 64, () => create('large'));
let started = 0;
const waiting = new Map<string, () => void>();
await using runner = createRunner({
  store,
  agents: {
    async works({ task }) {
      if (task.tenant === 'large') started++;
      else waiting.get(task.id)?.();
      await wait(WORK_MS);
      return 'done';
    },
  },
});
await runner.serve({ concurrency: SLOTS });
const before: number[] = [];
for (let i = 0; i < SAMPLES; i++) {
  await wait(5 + Math.random() * 20);
  const { promise, resolve } = Promise.withResolvers<void>();
  const seen = started;
  const id = await create(`small-${i}`);
  waiting.set(id, resolve);
  await promise;
  before.push(started - seen);
}
report({
  name: `fairness ${one.name}: tasks of a queue of ${WAITING} started before another tenant's one, at most`,
  ours: Math.max(...before),
  bare: MAX_BEFORE,
  goal: { atMost: 1 },
  more: { p50: percentile(before, 0.5), p95: percentile(before, 0.95), slots: SLOTS, samples: SAMPLES },
});
