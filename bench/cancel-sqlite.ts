// Process A cancels in the store, the token fires in process B. Compared, in turns, with the bare notifier plus one
// read, and with the same plus one changed record, which shows how much of the difference is the write.
import { fork } from 'node:child_process';
import { mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { createSqliteStore } from '@whoa/tasks/internal';
import { percentile, report } from './measure/measure.ts';

const SAMPLES = 2_000;
const WARM_UP = 50;

const folder = mkdtempSync(join(tmpdir(), 'whoa-bench-'));
const file = join(folder, 'tasks.db');
const notifierPath = join(folder, 'bell');
const notifier = openSync(notifierPath, 'a', 0o600);
const store = createSqliteStore({ file });
const { DatabaseSync } = process.getBuiltinModule('node:sqlite');
const raw = new DatabaseSync(file);
raw.exec('PRAGMA synchronous = NORMAL');
const change = raw.prepare('UPDATE tasks SET record = ? WHERE id = ?');
const known = await store.create({ tenant: 'bench', agent: 'bench', input: 'x' });
if (known.result !== 'created') throw new Error('not created');
const { task } = known;
const child = fork(join(import.meta.dirname, 'children/cancel-sqlite.ts'), [file, notifierPath, task.id]);
const waiting = new Map<string, (message: { at: string }) => void>();
child.on('message', (message: { type: string; at: string }) => waiting.get(message.type)?.(message));
const hear = (type: string): Promise<{ at: string }> => new Promise((resolve) => waiting.set(type, resolve));

async function timed(work: () => unknown): Promise<number> {
  await wait(2 + Math.random() * 3);
  const fired = hear('fired');
  const from = process.hrtime.bigint();
  await work();
  return Number(BigInt((await fired).at) - from) / 1e6;
}

async function sampleStore(): Promise<number> {
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
}

function ring(): void {
  writeSync(notifier, '.', 0);
}

function changeAndRing(): void {
  change.run(JSON.stringify({ ...task, watchedUntil: Date.now() }), task.id);
  ring();
}

await hear('ready');
const samples = { ours: [] as number[], bare: [] as number[], kept: [] as number[] };
for (let i = -WARM_UP; i < SAMPLES; i++) {
  const [oursMs, bareMs, keptMs] = [await sampleStore(), await timed(ring), await timed(changeAndRing)];
  if (i < 0) continue;
  samples.ours.push(oursMs);
  samples.bare.push(bareMs);
  samples.kept.push(keptMs);
}
child.kill();
raw.close();
await store[Symbol.asyncDispose]();
rmSync(folder, { recursive: true });
const p95 = (of: readonly number[]): number => Number(percentile(of, 0.95).toFixed(3));
for (const [name, beside] of Object.entries({ 'cancel-sqlite': samples.bare, 'cancel-sqlite-kept': samples.kept })) {
  report({
    name,
    ours: percentile(samples.ours, 0.5),
    bare: percentile(beside, 0.5),
    goal: { atMost: 1.5 },
    more: { unit: 'ms', samples: SAMPLES, oursP95: p95(samples.ours), bareP95: p95(beside) },
  });
}
