// Process A cancels in the store, the token fires in process B. Compared, in turns, with the bare engine: one stored
// change of a record with a notification in the same step, and one read. Also reports the notification alone.
import { fork } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { createTaskStore } from '@whoa/tasks';
import { percentile, report } from './measure/measure.ts';
import type { BenchCase } from './stores/bare.ts';
import { startPostgresCase } from './stores/postgres.ts';
import { createWaiting, WaitingWorker } from './stores/worker.ts';

const SAMPLES = 2_000;
const WARM_UP = 50;
const RUNNING = 2_000;
const QUEUED = 10_000;
/** How long it may take until all have ended, in milliseconds. */
const LIMITS_MS = { running: 2_000, queued: 2_000 };
/** How many cancels run at the same time. */
const CANCELLING = 64;

interface Samples {
  readonly ours: number[];
  readonly bare: number[];
  readonly kept: number[];
  /** How late the timers in between fired: the machine's share of every figure. */
  readonly late: number[];
}

await using one = await startPostgresCase();
const { ours, bare, kept, late } = await measure(one);
for (const [title, share, atMost] of [
  ['p50', 0.5, 1.5],
  ['p95', 0.95, 2],
] as const) {
  const [ringMs, timersLate] = [bare, late].map((samples) => Number(percentile(samples, share).toPrecision(3)));
  const more = { unit: 'ms', samples: SAMPLES, ringMs: ringMs!, timersLate: timersLate! };
  const figures = { ours: percentile(ours, share), bare: percentile(kept, share) };
  report({
    name: `cancel-${one.name} ${title} beside a bare change that is kept`,
    ...figures,
    goal: { atMost },
    more,
  });
}
await cancelMany(one);

/** Every task of a full worker, and a long queue that no worker has started, cancelled one by one. */
async function cancelMany(one: BenchCase): Promise<void> {
  await using store = createTaskStore(one.config);
  const cancelAll = async (ids: readonly string[]): Promise<void> => {
    let next = 0;
    const cancel = async (): Promise<void> => {
      while (next < ids.length) await store.cancel({ tenant: 'bench', id: ids[next++]! }, {}, { mode: 'now' });
    };
    await Promise.all(Array.from({ length: CANCELLING }, cancel));
  };
  const queued = await createWaiting(store, QUEUED);
  const queuedMs = await duration(() => cancelAll(queued));
  await using worker = await WaitingWorker.start(one.config, RUNNING);
  const running = await createWaiting(store, RUNNING);
  await worker.has(RUNNING);
  const runningMs = await duration(async () => {
    await cancelAll(running);
    await worker.has(0);
  });
  for (const [name, count, ours, bare] of [
    ['queued', QUEUED, queuedMs, LIMITS_MS.queued],
    ['running', RUNNING, runningMs, LIMITS_MS.running],
  ] as const) {
    // Compared with its limit, because no bare engine does this.
    report({ name: `cancel ${count} ${name} ${one.name}`, ours, bare, goal: { atMost: 1 }, more: { unit: 'ms' } });
  }
}

async function duration(work: () => Promise<unknown>): Promise<number> {
  const from = performance.now();
  await work();
  return performance.now() - from;
}

async function measure({ config, bare }: BenchCase): Promise<Samples> {
  await using store = createTaskStore(config);
  const child = fork(join(import.meta.dirname, 'children/cancel.ts'), [JSON.stringify(config)]);
  const waiting = new Map<string, (message: { at: string }) => void>();
  child.on('message', (message: { type: string; at: string }) => waiting.get(message.type)?.(message));
  const hear = (type: string): Promise<{ at: string }> => new Promise((resolve) => waiting.set(type, resolve));
  const samples: Samples = { ours: [], bare: [], kept: [], late: [] };
  /** Waits until everything is idle, so that earlier work is not measured. */
  const pause = async (): Promise<void> => {
    const [ms, from] = [2 + Math.floor(Math.random() * 4), performance.now()];
    await wait(ms);
    samples.late.push(performance.now() - from - ms);
  };
  const timed = async (work: () => Promise<unknown>): Promise<number> => {
    await pause();
    const fired = hear('fired');
    const from = process.hrtime.bigint();
    await work();
    return Number(BigInt((await fired).at) - from) / 1e6;
  };
  const sampleStore = async (): Promise<number> => {
    const receipt = await store.create({ tenant: 'bench', agent: 'bench', input: 'x', preferredWorker: 'bench' });
    if (receipt.result !== 'created') throw new Error('not created');
    const { id } = receipt.task;
    const working = hear('working');
    child.send({ id });
    await working;
    const ended = hear('ended');
    const ms = await timed(() => store.cancel({ tenant: 'bench', id }, {}, { mode: 'now' }));
    await ended;
    return ms;
  };
  await hear('ready');
  for (let i = 0; i < WARM_UP + SAMPLES; i++) {
    samples.ours.push(await sampleStore());
    samples.bare.push(await timed(() => bare.ring('bare-bell')));
    samples.kept.push(await timed(() => bare.writeAndRing('bare-bell')));
  }
  child.kill();
  const { ours, bare: rings, kept, late } = samples;
  return { ours: ours.slice(WARM_UP), bare: rings.slice(WARM_UP), kept: kept.slice(WARM_UP), late };
}
