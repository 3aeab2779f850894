// Process A cancels in the store, the token fires in process B. Beside it, in turns, the bare engine: a ring and one read, and
// the same with the change of one record in the ring's own step, which shows what of the difference is the keeping.
import { fork } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { createTaskStore } from '@whoa/tasks';
import { percentile, report } from './measure/measure.ts';
import type { BenchCase } from './stores/bare.ts';
import { cases } from './stores/cases.ts';

const SAMPLES = 500;
const WARM_UP = 50;

interface Samples {
  readonly ours: number[];
  readonly bare: number[];
  readonly kept: number[];
  /** How late the timers in between were: what the machine adds to everything. */
  readonly late: number[];
}

for (const start of cases) {
  await using one = await start();
  const { ours, bare, kept, late } = await measure(one);
  for (const [name, beside] of Object.entries({ [one.name]: bare, [`${one.name}-kept`]: kept })) {
    for (const [title, share, atMost] of [
      ['p50', 0.5, 1.3],
      ['p99', 0.99, 2],
    ] as const) {
      const lateMs = Number(percentile(late, share).toPrecision(3));
      const more = { unit: 'ms', samples: SAMPLES, timersLate: lateMs };
      const figures = { ours: percentile(ours, share), bare: percentile(beside, share) };
      report({ name: `cancel-${name} ${title}`, ...figures, goal: { atMost }, more });
    }
  }
}

async function measure({ config, bare }: BenchCase): Promise<Samples> {
  await using store = createTaskStore(config);
  const child = fork(join(import.meta.dirname, 'children/cancel.ts'), [JSON.stringify(config)]);
  const waiting = new Map<string, (message: { at: string }) => void>();
  child.on('message', (message: { type: string; at: string }) => waiting.get(message.type)?.(message));
  const hear = (type: string): Promise<{ at: string }> => new Promise((resolve) => waiting.set(type, resolve));
  const samples: Samples = { ours: [], bare: [], kept: [], late: [] };
  /** Waits until everything is quiet, so that nothing is measured of what was done before. */
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
    const receipt = await store.create({ tenant: 'bench', agent: 'bench', input: 'x', worker: 'bench' });
    if (receipt.answer !== 'created') throw new Error('not created');
    const { id } = receipt.task;
    const working = hear('working');
    child.send({ id });
    await working;
    const ended = hear('ended');
    const ms = await timed(() => store.cancel({ tenant: 'bench', id }, {}, { how: 'now' }));
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
