// From the cancel of a shell to its result and a dead tree: npm run bench -- shell [--json]
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { CancellationToken, createRuntime, type StopMode } from '@whoa/core';
import { type Containment, createBashTool, createContainment } from '@whoa/tools';
import { percentile, report } from './measure/measure.ts';
import { loadPiBashTool } from './peers/pi.ts';

const RUNS = 50;
/** A host runs for a long time, so its first minute is not measured. */
const WARM_UP = 30;
const SHELLS = 500;
const MAX_GRACEFUL_MS = 10;
const MANY_ROUNDS = 5;
/** A number of seconds that no other process sleeps. */
const seconds = `100.${process.pid}`;
const command = `sleep ${seconds}`;

await using containment = createContainment();
/** When the latest shell was found to have exited. */
let diedAt = 0;
const watched: Containment = {
  ...containment,
  async start(started) {
    const contained = await containment.start(started);
    contained.exited.then(() => (diedAt = performance.now())).catch(() => {});
    return contained;
  },
};
const runtime = createRuntime({ tools: [createBashTool({ containment: watched })], concurrency: SHELLS });

/** From the cancel to the exit of the tree, and to its result, which comes when the exit is verified. */
async function cancel(mode: StopMode): Promise<{ dead: number; returned: number }> {
  const token = new CancellationToken();
  const executing = runtime.execute([{ id: '1', tool: 'bash', input: { command } }], { token }).catch(() => {});
  await waitForSleepers(1);
  const startedAt = performance.now();
  token.cancel({ kind: 'user' }, { mode });
  await executing;
  const returned = performance.now() - startedAt;
  if (sleepers().length > 0) throw new Error('the result was there before the tree was dead');
  token[Symbol.dispose]();
  return { dead: diedAt - startedAt, returned };
}

async function bare(signal: NodeJS.Signals): Promise<number> {
  const child = startBare();
  await waitForSleepers(1);
  const startedAt = performance.now();
  process.kill(-child.pid!, signal);
  await waitForExit(child);
  return performance.now() - startedAt;
}

function startBare(): ChildProcess {
  return spawn('bash', ['-c', command], { detached: true, stdio: 'ignore' });
}

function waitForExit(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => child.once('exit', () => resolve()));
}

function sleepers(): string[] {
  const pids = readFileSync(`/proc/self/task/${process.pid}/children`, 'latin1').split(' ').filter(Boolean);
  return pids.filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'latin1') === `sleep\0${seconds}\0`;
    } catch {
      return false;
    }
  });
}

async function waitForSleepers(count: number): Promise<void> {
  while (sleepers().length < count) await new Promise((resolve) => setTimeout(resolve, 5));
}

interface Samples {
  readonly dead: number[];
  readonly returned: number[];
  readonly bare: number[];
}

/** Takes turns, so that a busy moment of the machine meets both. */
async function compare(mode: StopMode, other: () => Promise<number>): Promise<Samples> {
  const samples: Samples = { dead: [], returned: [], bare: [] };
  for (let run = -WARM_UP; run < RUNS; run++) {
    const { dead, returned } = await cancel(mode);
    const bareMs = await other();
    if (run < 0) continue;
    samples.dead.push(dead);
    samples.returned.push(returned);
    samples.bare.push(bareMs);
  }
  return samples;
}

function reportBeside(
  bareMs: readonly number[],
  ours: readonly number[],
  about: { name: string; atMost: number },
): void {
  const p95 = (values: readonly number[]): number => Number(percentile(values, 0.95).toFixed(2));
  report({
    name: about.name,
    ours: percentile(ours, 0.5),
    bare: percentile(bareMs, 0.5),
    goal: { atMost: about.atMost },
    more: { unit: 'ms, p50', oursP95: p95(ours), bareP95: p95(bareMs), runs: RUNS },
  });
}

async function measureOne(): Promise<void> {
  const killed = await compare('kill', () => bare('SIGKILL'));
  const beside = 'beside kill(-pid, SIGKILL) and wait';
  reportBeside(killed.bare, killed.dead, { name: `kill of a shell: tree dead, ${beside}`, atMost: 3 });
  const proved = `kill of a shell: proved dead and the result returned, ${beside}`;
  reportBeside(killed.bare, killed.returned, { name: proved, atMost: 3 });
  const asked = await compare('now', () => bare('SIGTERM'));
  const atMost = Number((MAX_GRACEFUL_MS / percentile(asked.bare, 0.5)).toFixed(2));
  const name = `graceful cancel of a shell that obeys TERM, within ${MAX_GRACEFUL_MS} ms`;
  reportBeside(asked.bare, asked.returned, { name, atMost });
}

async function cancelMany(): Promise<{ ms: number; left: number }> {
  const token = new CancellationToken();
  const calls = Array.from({ length: SHELLS }, (_, i) => ({ id: `${i}`, tool: 'bash', input: { command } }));
  const executing = runtime.execute(calls, { token }).catch(() => {});
  await waitForSleepers(SHELLS);
  const startedAt = performance.now();
  token.cancel({ kind: 'user' }, { mode: 'now' });
  await executing;
  const ms = performance.now() - startedAt;
  const left = sleepers().length;
  token[Symbol.dispose]();
  return { ms, left };
}

async function killManyBare(): Promise<number> {
  const children = Array.from({ length: SHELLS }, startBare);
  await waitForSleepers(SHELLS);
  const startedAt = performance.now();
  const exits = children.map(waitForExit);
  for (const { pid } of children) process.kill(-pid!, 'SIGKILL');
  await Promise.all(exits);
  return performance.now() - startedAt;
}

async function measureMany(): Promise<void> {
  const ours: number[] = [];
  const bareMs: number[] = [];
  let left = 0;
  for (let round = 0; round < MANY_ROUNDS; round++) {
    const cancelled = await cancelMany();
    ours.push(cancelled.ms);
    left += cancelled.left;
    bareMs.push(await killManyBare());
  }
  report({
    name: `${SHELLS} shells cancelled together: all proved dead and none left, beside as many kills`,
    ours: left === 0 ? percentile(ours, 0.5) : Infinity,
    bare: percentile(bareMs, 0.5),
    goal: { atMost: 10 },
    more: { unit: 'ms, p50', first: Math.round(ours[0]!), left, rounds: MANY_ROUNDS },
  });
}

async function measurePeer(): Promise<void> {
  const pi = await loadPiBashTool(process.cwd());
  if (typeof pi === 'string') {
    console.error(`skipped: beside pi's bash tool (${pi})`);
    return;
  }
  const theirs = async (): Promise<number> => {
    const controller = new AbortController();
    const executing = pi.execute('1', { command }, controller.signal).catch(() => {});
    await waitForSleepers(1);
    const startedAt = performance.now();
    controller.abort();
    await executing;
    return performance.now() - startedAt;
  };
  const samples = await compare('kill', theirs);
  const name = "kill of a shell: proved dead and the result returned, beside pi's bash tool, which proves nothing";
  reportBeside(samples.bare, samples.returned, { name, atMost: 3 });
}

await measureOne();
await measureMany();
await measurePeer();
