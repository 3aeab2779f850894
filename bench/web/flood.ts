import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { createTaskStore } from '@whoa/tasks';
import { percentile, report } from '../measure/measure.ts';
import type { BenchCase } from '../stores/bare.ts';
import { BENCH, createClient, Server, startChild } from './process.ts';

const ROUNDS = 3;
const SAMPLES = 200;
/** How many requests of the flooding tenant are under way at any time. */
const AT_ONCE = 32;
/** How long it is quiet before the other is measured alone. */
const QUIET_MS = 2_000;
/** Below the rate limit of a tenant. */
const PAUSE_MS = 25;

/**
 * One tenant sends requests as fast as it gets responses; another reads and cancels at a normal pace, with and without
 * that, in turns.
 */
export async function measureFlood({ name, config }: BenchCase): Promise<void> {
  await using store = createTaskStore(config);
  const flooder = createClient('flood');
  await using server = await Server.start('limited', config, [BENCH, flooder]);
  const flood = await startChild('flood', [`${server.url}/v1/tasks`, JSON.stringify(flooder.headers), `${AT_ONCE}`]);
  const samples = { alone: { read: [], cancel: [] }, flooded: { read: [], cancel: [] } } as Record<
    'alone' | 'flooded',
    Record<'read' | 'cancel', number[]>
  >;
  let requests = 0;
  for (let round = 0; round < 2 * ROUNDS; round++) {
    const mode = round % 2 === 0 ? 'alone' : 'flooded';
    // From its first request: the burst that every client is allowed is part of it.
    if (mode === 'flooded') flood.send('start');
    else await wait(QUIET_MS);
    for (let i = 0; i < SAMPLES / 2; i++) {
      const receipt = await store.create({ tenant: BENCH.tenant, agent: 'waits', input: 'x' });
      if (receipt.result !== 'created') throw new Error(receipt.result);
      const path = `${server.url}/v1/tasks/${receipt.task.id}`;
      samples[mode].read.push(await timed(() => fetch(path, { headers: BENCH.headers })));
      await wait(PAUSE_MS);
      const init = { method: 'POST', headers: BENCH.headers, body: JSON.stringify({ mode: 'now' }) };
      samples[mode].cancel.push(await timed(() => fetch(`${path}/cancel`, init)));
      await wait(PAUSE_MS);
    }
    if (mode === 'flooded') {
      const answer = once(flood, 'message') as Promise<[number]>;
      flood.send('stop');
      requests += (await answer)[0];
    }
  }
  flood.kill();
  for (const what of ['read', 'cancel'] as const) {
    report({
      name: `server ${what} ${name} p95 while another tenant floods, beside alone`,
      ours: percentile(samples.flooded[what], 0.95),
      bare: percentile(samples.alone[what], 0.95),
      goal: { atMost: 2 },
      more: {
        unit: 'ms',
        samples: samples.flooded[what].length,
        p50: Number(percentile(samples.flooded[what], 0.5).toPrecision(3)),
        aloneP50: Number(percentile(samples.alone[what], 0.5).toPrecision(3)),
        floodRequests: requests,
      },
    });
  }
}

async function timed(ask: () => Promise<Response>): Promise<number> {
  const from = performance.now();
  const response = await ask();
  await response.arrayBuffer();
  if (!response.ok) throw new Error(`${response.status}`);
  return performance.now() - from;
}
