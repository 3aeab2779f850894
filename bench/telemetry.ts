// What telemetry with metrics for Prometheus adds to the cost of a trivial task on a worker and Postgres: npm run bench --
// telemetry
import { createPrometheusMetrics, createTelemetry } from '@whoa/server/telemetry';
import { createMemoryStore, createRunner, type RunnerOptions } from '@whoa/tasks';
import { percentile, report } from './measure/measure.ts';
import { Team } from './queues/team.ts';
import { startPostgresCase } from './stores/postgres.ts';

const COUNT = 2_000;
const ROUNDS = 11;
const CONCURRENCY = 50;

const telemetry = createTelemetry({ prometheus: await createPrometheusMetrics() });
const plain: number[] = [];
const measured: number[] = [];
for (let round = -3; round < ROUNDS; round++) {
  // In turns, and each first in turn, because the leftovers of one cost the other.
  for (const isMeasured of round % 2 === 0 ? [true, false] : [false, true]) {
    const ms = await cpuPerTask((options) => (isMeasured ? telemetry.observe(options) : options));
    if (round >= 0) (isMeasured ? measured : plain).push(ms);
  }
}
await using postgres = await startPostgresCase();
if (!('url' in postgres.config)) throw new TypeError('url: expected an address');
await using team = await Team.start('whoa', String(postgres.config.url));
await team.run(COUNT);
const before = await postgres.cpuSeconds();
const { workerMs } = await team.run(COUNT);
const taskMs = workerMs + (((await postgres.cpuSeconds()) - before) * 1_000) / COUNT;
const differences = measured.map((ms, i) => ms - plain[i]!);
const addedMs = percentile(differences, 0.5);
const more = {
  unit: 'ms of CPU, server and worker',
  addedUs: (addedMs * 1_000).toFixed(2),
  rounds: ROUNDS,
  count: COUNT,
};
report({ name: 'task with telemetry', ours: taskMs + addedMs, bare: taskMs, goal: { atMost: 1.01 }, more });

/** Processor time per task, from create to end, of a worker on a store in memory. */
async function cpuPerTask(change: (options: RunnerOptions) => RunnerOptions): Promise<number> {
  const store = createMemoryStore();
  let left = COUNT;
  const ended = Promise.withResolvers<void>();
  const runner = createRunner(
    change({
      store,
      agents: { trivial: () => Promise.resolve('done') },
      hooks: { 'task-end': () => --left === 0 && ended.resolve() },
    }),
  );
  globalThis.gc?.();
  for (let i = 0; i < COUNT; i++) await store.create({ tenant: 'bench', agent: 'trivial', input: 'x' });
  const from = process.cpuUsage();
  await runner.serve({ concurrency: CONCURRENCY });
  await ended.promise;
  const { user, system } = process.cpuUsage(from);
  await runner[Symbol.asyncDispose]();
  await store[Symbol.asyncDispose]();
  return (user + system) / 1_000 / COUNT;
}
