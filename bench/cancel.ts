// Process A cancels in the store, the token fires in process B; beside it, in turns, the bare engine and one read.
import { fork } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { createTaskStore } from '@whoa/tasks';
import { percentile, report } from './measure/measure.ts';
import type { BenchCase } from './stores/bare.ts';
import { cases } from './stores/cases.ts';

const SAMPLES = 500;
const WARM_UP = 50;

for (const start of cases) {
  await using one = await start();
  const { ours, bare } = await measure(one);
  const figures = (share: number) => ({ ours: percentile(ours, share), bare: percentile(bare, share) });
  const more = { unit: 'ms', samples: SAMPLES };
  report({ name: `cancel-${one.name} p50`, ...figures(0.5), goal: { atMost: 1.3 }, more });
  report({ name: `cancel-${one.name} p99`, ...figures(0.99), goal: { atMost: 2 }, more });
}

async function measure({ config, bare }: BenchCase): Promise<{ ours: number[]; bare: number[] }> {
  await using store = createTaskStore(config);
  const child = fork(join(import.meta.dirname, 'children/cancel.ts'), [JSON.stringify(config)]);
  const waiting = new Map<string, (message: { at: string }) => void>();
  child.on('message', (message: { type: string; at: string }) => waiting.get(message.type)?.(message));
  const hear = (type: string): Promise<{ at: string }> => new Promise((resolve) => waiting.set(type, resolve));
  const timed = async (work: () => Promise<unknown>): Promise<number> => {
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
    await wait(2 + Math.random() * 3);
    const ended = hear('ended');
    const ms = await timed(() => store.cancel({ tenant: 'bench', id }, {}, { how: 'now' }));
    await ended;
    return ms;
  };
  const sampleBare = async (): Promise<number> => {
    await wait(2 + Math.random() * 3);
    return timed(() => bare.ring('bare-bell'));
  };
  await hear('ready');
  const samples = { ours: [] as number[], bare: [] as number[] };
  for (let i = -WARM_UP; i < SAMPLES; i++) {
    const [storeMs, bareMs] = [await sampleStore(), await sampleBare()];
    if (i < 0) continue;
    samples.ours.push(storeMs);
    samples.bare.push(bareMs);
  }
  child.kill();
  return samples;
}
