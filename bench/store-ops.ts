// Operations per second and the server's processor time for each, compared with the engine's cheapest write.
import { createTaskStore } from '@whoa/tasks';
import { report } from './measure/measure.ts';
import type { BenchCase } from './stores/bare.ts';
import { createOne, OPERATIONS, repeat } from './stores/operations.ts';
import { startPostgresCase } from './stores/postgres.ts';

const COUNT = 5_000;
const CONCURRENCY = 32;

interface Cost {
  readonly perSecond: number;
  readonly serverMicros: number;
}

await using one = await startPostgresCase();
await using store = createTaskStore(one.config);
const ids: string[] = [];
const operations = {
  create: async () => ids.push(await createOne(store)),
  ...Object.fromEntries(
    Object.entries(OPERATIONS).map(([name, operation]) => [name, (i: number) => operation(store, ids[i]!)]),
  ),
};
await repeat(500, CONCURRENCY, (i) => one.bare.write(`warm-${i}`));
// The first requests also create the tables and functions.
await repeat(500, CONCURRENCY, () => createOne(store));
for (const [name, operation] of Object.entries(operations)) {
  const bare = await measure(one, (i) => one.bare.write(`bare-${i}`));
  const ours = await measure(one, operation);
  report({
    name: `${one.name} ${name}`,
    ours: ours.serverMicros,
    bare: bare.serverMicros,
    // One operation is several writes, an index and a message: it is measured, there is no goal.
    goal: { atMost: Infinity },
    more: {
      unit: 'µs of server CPU',
      perSecond: Math.round(ours.perSecond),
      barePerSecond: Math.round(bare.perSecond),
    },
  });
}

async function measure(server: BenchCase, work: (index: number) => Promise<unknown>): Promise<Cost> {
  const [cpu, from] = [await server.cpuSeconds(), performance.now()];
  await repeat(COUNT, CONCURRENCY, work);
  const seconds = (performance.now() - from) / 1_000;
  return { perSecond: COUNT / seconds, serverMicros: (((await server.cpuSeconds()) - cpu) / COUNT) * 1e6 };
}
