// The cost of a token, compared with what the platform offers.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { CancellationToken, guard } from '@whoa/core';
import { percentile, report } from './measure/measure.ts';

const ROUNDS = 15;
/** Warm-up rounds, because the code of a long-running process is compiled. */
const WARM_UP = 3;
const CALL_RUNS = 9;
const CALL_WARM_UP = 20;

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
  const sides = { ours: startSide('fan-out', 'ours'), bare: startSide('fan-out', 'bare') };
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
  for (const [what, timesCheaper] of [
    ['built', 10],
    ['cancelled', 3],
  ] as const) {
    const [ours, bare] = [median(what, 'ours'), median(what, 'bare')];
    const more = { 'times cheaper': (bare / ours).toFixed(1) };
    const goal = { atMost: 1 / timesCheaper };
    const name = `100,000 children ${what}: ours beside AbortSignal.any (ms of CPU)`;
    report({ name, ours, bare, goal, more });
  }
}

function startSide(program: string, ...args: string[]): { child: ChildProcess; next: () => Promise<unknown[]> } {
  const child = fork(join(import.meta.dirname, `children/${program}.ts`), args, {
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

/** Ours minus bare, in microseconds a call: there is no baseline for an empty call. */
async function executing(name: string): Promise<void> {
  const sides = { ours: startSide('trivial-calls', 'ours', name), bare: startSide('trivial-calls', 'bare', name) };
  const over: number[] = [];
  const samples = { ours: [] as number[], bare: [] as number[] };
  for (let run = -CALL_WARM_UP; run < CALL_RUNS; run++) {
    const [ours] = (await sides.ours.next()) as [number];
    const [bare] = (await sides.bare.next()) as [number];
    if (run < 0) continue;
    over.push(ours - bare);
    samples.ours.push(ours);
    samples.bare.push(bare);
  }
  for (const side of Object.values(sides)) side.child.kill();
  report({
    name: `a trivial call (${name}) over a bare bounded loop's, beside 1 µs (µs of CPU, median of ${CALL_RUNS} runs of 10,000)`,
    ours: percentile(over, 0.5),
    bare: 1,
    goal: { atMost: 3 },
    more: {
      p95: percentile(over, 0.95).toFixed(1),
      ourCall: percentile(samples.ours, 0.5).toFixed(2),
      bareCall: percentile(samples.bare, 0.5).toFixed(2),
    },
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
    token.cancel({}, { mode: ladder });
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
for (const work of ['an async function', 'one turn of the event loop', 'a timer of 1 ms']) await executing(work);
await deaf();
