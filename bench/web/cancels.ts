import { fork } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { createTaskStore } from '@whoa/tasks';
import { percentile, report } from '../measure/measure.ts';
import type { BenchCase } from '../stores/bare.ts';
import { BENCH, Server } from './process.ts';

const SAMPLES = 500;
const WARM_UP = 50;

/**
 * A cancel over HTTP until the token fires in a worker, three processes: compared, in turns, with a bare handler that
 * does the same.
 */
export async function measureCancels({ name, config }: BenchCase): Promise<void> {
  await using store = createTaskStore(config);
  await using ours = await Server.start('ours', config);
  await using bare = await Server.start('bare', config);
  const worker = fork(join(import.meta.dirname, '../children/cancel.ts'), [JSON.stringify(config)]);
  const waiting = new Map<string, (message: { at: string }) => void>();
  worker.on('message', (message: { type: string; at: string }) => waiting.get(message.type)?.(message));
  const hear = (type: string): Promise<{ at: string }> => new Promise((resolve) => waiting.set(type, resolve));
  await hear('ready');
  /** From the request to the token in the worker. */
  const sample = async (cancel: (id: string) => Promise<unknown>): Promise<number> => {
    const receipt = await store.create({ tenant: 'bench', agent: 'bench', input: 'x', preferredWorker: 'bench' });
    if (receipt.result !== 'created') throw new Error(receipt.result);
    const working = hear('working');
    worker.send({ id: receipt.task.id });
    await working;
    const [fired, ended] = [hear('fired'), hear('ended')];
    await wait(2);
    const from = process.hrtime.bigint();
    await cancel(receipt.task.id);
    const ms = Number(BigInt((await fired).at) - from) / 1e6;
    await ended;
    return ms;
  };
  const overHttp = (port: number) => async (id: string) => {
    const body = JSON.stringify({ mode: 'now' });
    const response = await fetch(`http://127.0.0.1:${port}/v1/tasks/${id}/cancel`, {
      method: 'POST',
      headers: BENCH.headers,
      body,
    });
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
    await response.arrayBuffer();
  };
  const samples: Record<'ours' | 'bare' | 'store', number[]> = { ours: [], bare: [], store: [] };
  for (let i = 0; i < WARM_UP + SAMPLES; i++) {
    samples.ours.push(await sample(overHttp(ours.port)));
    samples.bare.push(await sample(overHttp(bare.port)));
    samples.store.push(await sample((id) => store.cancel({ tenant: 'bench', id }, {}, { mode: 'now' })));
  }
  worker.kill();
  for (const [title, share] of [
    ['p50', 0.5],
    ['p95', 0.95],
  ] as const) {
    const of = (all: readonly number[]): number => percentile(all.slice(WARM_UP), share);
    report({
      name: `server cancel ${name} ${title} beside a bare handler on the same store`,
      ours: of(samples.ours),
      bare: of(samples.bare),
      goal: { atMost: 2 },
      more: { unit: 'ms', samples: SAMPLES, storeAloneMs: Number(of(samples.store).toPrecision(3)) },
    });
  }
}
