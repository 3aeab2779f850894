// Process A cancels in the store, the token fires in process B; beside it, the bare doorbell and one read.
import { fork } from 'node:child_process';
import { mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { createSqliteStore } from '@whoa/tasks';
import { percentile, report } from './measure/measure.ts';

const SAMPLES = 500;
const WARM_UP = 30;

const folder = mkdtempSync(join(tmpdir(), 'whoa-bench-'));
const file = join(folder, 'tasks.db');
const bellPath = join(folder, 'bell');
const bell = openSync(bellPath, 'a', 0o600);
const store = createSqliteStore({ file });
const child = fork(join(import.meta.dirname, 'children/cancel-sqlite.ts'), [file, bellPath]);
const waiting = new Map<string, (message: { at: string }) => void>();
child.on('message', (message: { type: string; at: string }) => waiting.get(message.type)?.(message));
const hear = (type: string): Promise<{ at: string }> => new Promise((resolve) => waiting.set(type, resolve));

async function sampleStore(): Promise<number> {
  const receipt = await store.create({ tenant: 'bench', agent: 'bench', input: 'x', worker: 'bench' });
  if (receipt.answer !== 'created') throw new Error('not created');
  const { id } = receipt.task;
  const working = hear('working');
  child.send({ type: 'work', id });
  await working;
  await wait(2 + Math.random() * 3);
  const [fired, ended] = [hear('fired'), hear('ended')];
  const from = process.hrtime.bigint();
  await store.cancel({ tenant: 'bench', id }, {}, { how: 'now' });
  const { at } = await fired;
  await ended;
  return Number(BigInt(at) - from) / 1e6;
}

async function sampleBare(id: string): Promise<number> {
  const working = hear('working');
  child.send({ type: 'bare', id });
  await working;
  await wait(2 + Math.random() * 3);
  const fired = hear('fired');
  const from = process.hrtime.bigint();
  writeSync(bell, '.', 0);
  return Number(BigInt((await fired).at) - from) / 1e6;
}

await hear('ready');
const known = await store.create({ tenant: 'bench', agent: 'bench', input: 'x' });
const id = known.answer === 'created' ? known.task.id : '';
const ours: number[] = [];
const bare: number[] = [];
for (let i = -WARM_UP; i < SAMPLES; i++) {
  const [storeMs, bareMs] = [await sampleStore(), await sampleBare(id)];
  if (i < 0) continue;
  ours.push(storeMs);
  bare.push(bareMs);
}
child.kill();
await store[Symbol.asyncDispose]();
rmSync(folder, { recursive: true });
const p99 = (samples: number[]): number => Number(percentile(samples, 0.99).toFixed(3));
report({
  name: 'cancel-sqlite',
  ours: percentile(ours, 0.5),
  bare: percentile(bare, 0.5),
  goal: { atMost: 1.5 },
  more: { unit: 'ms', samples: SAMPLES, oursP99: p99(ours), bareP99: p99(bare) },
});
