// What a token costs beside what the platform offers.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { CancellationToken, createRuntime, defineTool, guard, type InputSchema } from '@whoa/core';
import { percentile, report } from './measure/measure.ts';

const ROUNDS = 15;
/** Rounds that are not counted: code that lives for months is compiled. */
const WARM_UP = 3;
const anything: InputSchema = { '~standard': { version: 1, vendor: 'bench', validate: (value) => ({ value }) } };

/** The medians of both, measured in turns so that noise hits them alike. */
async function sideBySide(
  ours: () => unknown,
  bare: () => unknown,
  rounds = ROUNDS,
): Promise<{ ours: number; bare: number; p99: number }> {
  const samples = { ours: [] as number[], bare: [] as number[] };
  for (let round = -WARM_UP; round < rounds; round++) {
    for (const [name, work] of [
      ['ours', ours],
      ['bare', bare],
    ] as const) {
      global.gc?.();
      const start = performance.now();
      await work();
      if (round >= 0) samples[name].push(performance.now() - start);
    }
  }
  return {
    ours: percentile(samples.ours, 0.5),
    bare: percentile(samples.bare, 0.5),
    p99: percentile(samples.ours, 0.99),
  };
}

async function asking(): Promise<void> {
  const token = new CancellationToken();
  const { signal } = new AbortController();
  const times = 5_000_000;
  let yes = 0;
  const cost = await sideBySide(
    () => {
      for (let i = 0; i < times; i++) if (token.isCancelled) yes++;
    },
    () => {
      for (let i = 0; i < times; i++) if (signal.aborted) yes++;
    },
  );
  if (yes > 0) throw new Error('nobody cancelled');
  report({ name: 'isCancelled beside signal.aborted, 5,000,000 times (ms)', ...cost, goal: { atMost: 1.5 } });
}

interface FanOut {
  readonly built: number;
  readonly cancelled: number;
}

async function fanOut(): Promise<void> {
  const sides = { ours: startSide('ours'), bare: startSide('bare') };
  const samples: Record<keyof typeof sides, FanOut[]> = { ours: [], bare: [] };
  for (let round = -WARM_UP; round < ROUNDS; round++) {
    for (const side of ['ours', 'bare'] as const) {
      const [figures] = (await sides[side].next()) as [FanOut];
      if (round >= 0) samples[side].push(figures);
    }
  }
  for (const side of Object.values(sides)) side.child.kill();
  const median = (what: keyof FanOut, side: keyof typeof sides): number =>
    percentile(
      samples[side].map((figures) => figures[what]),
      0.5,
    );
  for (const [what, atLeast] of [
    ['built', 10],
    ['cancelled', 3],
  ] as const) {
    // As "how many times cheaper", so that the goal reads as it is meant.
    const figures = { ours: median(what, 'bare'), bare: median(what, 'ours') };
    report({ name: `100,000 children ${what}: AbortSignal.any beside ours (ms)`, ...figures, goal: { atLeast } });
  }
}

function startSide(side: 'ours' | 'bare'): { child: ChildProcess; next: () => Promise<unknown[]> } {
  const child = fork(join(import.meta.dirname, 'children/fan-out.ts'), [side], {
    execArgv: [...process.execArgv, '--expose-gc'],
  });
  return {
    child,
    next() {
      const answer = once(child, 'message');
      child.send('go');
      return answer;
    },
  };
}

/** The least a bounded loop can be: workers that take the next call and keep its result. */
async function bareLoop(calls: number, concurrency: number, work: (i: number) => Promise<string>): Promise<string[]> {
  const results: string[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let i = next++; i < calls; i = next++) results[i] = await work(i);
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  return results;
}

async function executing(name: string, work: () => Promise<string>): Promise<void> {
  const runtime = createRuntime({
    concurrency: 16,
    tools: [defineTool({ name: 'trivial', description: '', effects: 'read', input: anything, execute: work })],
  });
  const calls = Array.from({ length: 10_000 }, (_, i) => ({ id: `${i}`, tool: 'trivial', input: {} }));
  const token = new CancellationToken();
  const cost = await sideBySide(
    () => runtime.execute(calls, { token }),
    () => bareLoop(calls.length, 16, work),
    7,
  );
  const more = { microsecondsPerCall: ((cost.ours - cost.bare) / 10).toFixed(1) };
  report({
    name: `10,000 trivial calls (${name}) beside a bare bounded loop (ms)`,
    ...cost,
    goal: { atMost: 2 },
    more,
  });
}

async function deaf(): Promise<void> {
  const ladder = { drainMs: 100, abortMs: 100 };
  const late: number[] = [];
  const bare: number[] = [];
  for (let round = 0; round < 20; round++) {
    const token = new CancellationToken();
    const work = guard(() => new Promise(() => {}), { name: 'deaf', token }).catch(() => {});
    const start = performance.now();
    token.cancel({}, { how: ladder });
    await work;
    late.push(performance.now() - start);
    token[Symbol.dispose]();
    const started = performance.now();
    await wait(200);
    bare.push(performance.now() - started);
  }
  const [p50, p99] = [percentile(late, 0.5), percentile(late, 0.99)];
  report({
    name: 'a deaf call settles, ladder of 200 ms, beside a timer of 200 ms (ms)',
    ours: p99,
    bare: percentile(bare, 0.5),
    goal: { atMost: 1.25 },
    more: { p50: p50.toFixed(1), overLadderMs: (p99 - 200).toFixed(1) },
  });
}

await asking();
await fanOut();
await executing('an async function', () => Promise.resolve('ok'));
await executing('one turn of the event loop', () => new Promise((resolve) => setImmediate(() => resolve('ok'))));
await executing('a timer of 1 ms', () => new Promise((resolve) => setTimeout(() => resolve('ok'), 1)));
await deaf();
