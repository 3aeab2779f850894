// The cost of safety: a file read and written by our tools and by the bare calls, and how fast a large write and a search stop.
import { mkdtempSync, rmSync } from 'node:fs';
import { open, readFile, rename, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CancellationToken, createRuntime, type Tool } from '@whoa/core';
import { createFileTools, createRoot } from '@whoa/tools';
import { percentile, report } from './measure/measure.ts';

const ROUNDS = 300;
const folder = mkdtempSync(join(tmpdir(), 'whoa-bench-'));
const root = createRoot(folder);
const runtime = createRuntime({ tools: createFileTools({ root }) as Tool[] });
const content = 'x'.repeat(10_000);
let calls = 0;
const call = (tool: string, input: unknown, token?: CancellationToken) =>
  runtime.execute([{ id: `${calls++}`, tool, input }], token && { token });

async function time(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

/** Takes turns, so that whatever else the machine does happens to both. */
async function compare(ours: () => Promise<unknown>, bare: () => Promise<unknown>) {
  const samples = { ours: [] as number[], bare: [] as number[] };
  for (let round = 0; round < ROUNDS; round++) {
    samples.ours.push(await time(ours));
    samples.bare.push(await time(bare));
  }
  return { ours: percentile(samples.ours, 0.5), bare: percentile(samples.bare, 0.5) };
}

async function bareReplace(): Promise<void> {
  const temp = join(folder, 'bare.tmp');
  const file = await open(temp, 'w');
  await file.writeFile(content);
  await file.sync();
  await file.close();
  await rename(temp, join(folder, 'bare.txt'));
}

async function stopTimes(tool: string, input: unknown): Promise<number[]> {
  const times: number[] = [];
  for (let round = 0; round < 20; round++) {
    const token = new CancellationToken();
    const running = call(tool, input, token).catch(() => undefined);
    await new Promise((resolve) => setTimeout(resolve, 20));
    times.push(
      await time(() => {
        token.cancel({ kind: 'user' }, { mode: 'now' });
        return running;
      }),
    );
  }
  return times;
}

try {
  await writeFile(join(folder, 'a.txt'), content);
  const read = await compare(
    () => call('read', { path: 'a.txt' }),
    () => readFile(join(folder, 'a.txt'), 'utf8'),
  );
  report({ name: 'read 10 KB, p50 ms', ...read, goal: { atMost: 20 } });
  const write = await compare(() => call('write', { path: 'a.txt', content }), bareReplace);
  report({ name: 'write 10 KB whole and synced, p50 ms', ...write, goal: { atMost: 5 } });
  const large = { path: 'big.txt', content: 'A'.repeat(64_000_000) };
  const wholeMs = await time(() => call('write', large));
  const stops = await stopTimes('write', large);
  report({
    name: 'cancel of a 64 MB write until it is tidy, p50 ms, beside the whole write',
    ours: percentile(stops, 0.5),
    bare: wholeMs,
    goal: { atMost: 0.5 },
    more: { p95: percentile(stops, 0.95).toFixed(1) },
  });
  await writeFile(join(folder, 'search.txt'), 'lorem ipsum dolor sit amet '.repeat(3_000_000));
  const slow = { pattern: '(\\w+\\s){12}zq', path: 'search.txt' };
  const searchMs = await time(() => call('grep', slow));
  const searchStops = await stopTimes('grep', slow);
  report({
    name: 'cancel of a search until its process is gone, p50 ms, beside the whole search',
    ours: percentile(searchStops, 0.5),
    bare: searchMs,
    goal: { atMost: 0.5 },
    more: { p95: percentile(searchStops, 0.95).toFixed(1) },
  });
} finally {
  rmSync(folder, { recursive: true });
}
