// What a token costs beside what the platform offers.
import { setTimeout as wait } from 'node:timers/promises';
import { CancellationToken, createRuntime, defineTool, guard, type InputSchema } from '@whoa/core';
import { percentile, report } from './measure/measure.ts';

const ROUNDS = 15;
const anything: InputSchema = { '~standard': { version: 1, vendor: 'bench', validate: (value) => ({ value }) } };

/** The medians of both, measured in turns so that noise hits them alike. */
async function sideBySide(
  ours: () => unknown,
  bare: () => unknown,
  rounds = ROUNDS,
): Promise<{ ours: number; bare: number; p99: number }> {
  const samples = { ours: [] as number[], bare: [] as number[] };
  for (let round = -3; round < rounds; round++) {
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

function fanOut(): void {
  const size = 100_000;
  let called = 0;
  const listen = (): void => {
    called++;
  };
  const build = { ours: [] as number[], bare: [] as number[] };
  const cancel = { ours: [] as number[], bare: [] as number[] };
  for (let round = -1; round < 5; round++) {
    const start = performance.now();
    const root = new CancellationToken();
    const children = Array.from({ length: size }, () => {
      const child = root.child();
      child.onCancel(listen);
      return child;
    });
    const built = performance.now();
    root.cancel({}, { how: 'kill' });
    const cancelled = performance.now();
    for (const child of children) child[Symbol.dispose]();
    global.gc?.();

    const startBare = performance.now();
    const controller = new AbortController();
    const signals = Array.from({ length: size }, () => {
      const signal = AbortSignal.any([controller.signal]);
      signal.addEventListener('abort', listen);
      return signal;
    });
    const builtBare = performance.now();
    controller.abort();
    const cancelledBare = performance.now();
    if (round >= 0) {
      build.ours.push(built - start);
      cancel.ours.push(cancelled - built);
      build.bare.push(builtBare - startBare);
      cancel.bare.push(cancelledBare - builtBare);
    }
    if (signals.length !== size) throw new Error('lost signals');
    global.gc?.();
  }
  if (called !== 12 * size) throw new Error(`heard ${called} of ${12 * size}`);
  const median = (samples: { ours: number[]; bare: number[] }) => ({
    // As "how many times cheaper", so that the goal reads as it is meant.
    ours: percentile(samples.bare, 0.5),
    bare: percentile(samples.ours, 0.5),
  });
  report({ name: '100,000 children built: AbortSignal.any beside ours (ms)', ...median(build), goal: { atLeast: 10 } });
  report({
    name: '100,000 children cancelled: AbortSignal.any beside ours (ms)',
    ...median(cancel),
    goal: { atLeast: 3 },
  });
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
fanOut();
await executing('an async function', () => Promise.resolve('ok'));
await executing('one turn of the event loop', () => new Promise((resolve) => setImmediate(() => resolve('ok'))));
await executing('a timer of 1 ms', () => new Promise((resolve) => setTimeout(() => resolve('ok'), 1)));
await deaf();
