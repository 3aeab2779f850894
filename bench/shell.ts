// From the cancel of a shell to its result and a dead tree: npm run bench -- shell [--json]
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { CancellationToken, createRuntime, type StopHow } from '@whoa/core';
import { bashTool, createContainment } from '@whoa/tools';
import { percentile, report } from './measure/measure.ts';
import { loadPiBashTool } from './peers/pi.ts';

const RUNS = 50;
/** A host lives long; what is measured is not its first minute. */
const WARM_UP = 30;
const SHELLS = 500;
const GRACEFUL_MS_MAX = 10;
const MANY_MS_MAX = 5_000;
/** A number of seconds that nobody else sleeps. */
const seconds = `100.${process.pid}`;
const command = `sleep ${seconds}`;

await using containment = createContainment();
const runtime = createRuntime({ tools: [bashTool({ containment })], concurrency: SHELLS });

async function ours(how: StopHow): Promise<number> {
  const token = new CancellationToken();
  const executing = runtime.execute([{ id: '1', tool: 'bash', input: { command } }], { token }).catch(() => {});
  await waitForSleepers(1);
  const startedAt = performance.now();
  token.cancel({ kind: 'user' }, { how });
  await executing;
  const ms = performance.now() - startedAt;
  if (sleepers().length > 0) throw new Error('the result was there before the tree was dead');
  token[Symbol.dispose]();
  return ms;
}

async function bare(signal: NodeJS.Signals): Promise<number> {
  const child = startBare();
  await waitForSleepers(1);
  const startedAt = performance.now();
  process.kill(-child.pid!, signal);
  await exitOf(child);
  return performance.now() - startedAt;
}

function startBare(): ChildProcess {
  return spawn('bash', ['-c', command], { detached: true, stdio: 'ignore' });
}

function exitOf(child: ChildProcess): Promise<void> {
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

/** Takes turns, so that a busy moment of the machine meets both. */
async function compare(
  one: () => Promise<number>,
  other: () => Promise<number>,
): Promise<{ ours: number[]; bare: number[] }> {
  const samples = { ours: [] as number[], bare: [] as number[] };
  for (let run = -WARM_UP; run < RUNS; run++) {
    const mine = await one();
    const theirs = await other();
    if (run < 0) continue;
    samples.ours.push(mine);
    samples.bare.push(theirs);
  }
  return samples;
}

function more(samples: { ours: number[]; bare: number[] }): Record<string, number | string> {
  const p95 = (values: number[]): number => Number(percentile(values, 0.95).toFixed(2));
  return { unit: 'ms, p50', oursP95: p95(samples.ours), bareP95: p95(samples.bare), runs: RUNS };
}

/** From the order to the death of the tree, before it is verified. */
async function dead(): Promise<number> {
  const { PATH = '' } = process.env;
  const contained = await containment.start({ argv: ['bash', '-c', command], env: { PATH }, onOutput: () => {} });
  await waitForSleepers(1);
  const startedAt = performance.now();
  const ending = contained.end({ how: 'kill' });
  await contained.exited;
  const ms = performance.now() - startedAt;
  await ending;
  contained.output?.[Symbol.dispose]();
  return ms;
}

async function measureOne(): Promise<void> {
  const bareKill = (): Promise<number> => bare('SIGKILL');
  const ended = await compare(dead, bareKill);
  report({
    name: 'kill of a shell: tree dead, beside kill(-pid, SIGKILL) and wait',
    ours: percentile(ended.ours, 0.5),
    bare: percentile(ended.bare, 0.5),
    goal: { atMost: 3 },
    more: more(ended),
  });
  const killed = await compare(() => ours('kill'), bareKill);
  report({
    name: 'kill of a shell: verified and the result returned, beside the same',
    ours: percentile(killed.ours, 0.5),
    bare: percentile(killed.bare, 0.5),
    goal: { atMost: 6 },
    more: more(killed),
  });
  const asked = await compare(
    () => ours('now'),
    () => bare('SIGTERM'),
  );
  const bareAsked = percentile(asked.bare, 0.5);
  report({
    name: `graceful cancel of a shell that obeys TERM, within ${GRACEFUL_MS_MAX} ms`,
    ours: percentile(asked.ours, 0.5),
    bare: bareAsked,
    goal: { atMost: Number((GRACEFUL_MS_MAX / bareAsked).toFixed(2)) },
    more: more(asked),
  });
}

async function measureMany(): Promise<void> {
  const token = new CancellationToken();
  const calls = Array.from({ length: SHELLS }, (_, i) => ({ id: `${i}`, tool: 'bash', input: { command } }));
  const executing = runtime.execute(calls, { token }).catch(() => {});
  await waitForSleepers(SHELLS);
  const startedAt = performance.now();
  token.cancel({ kind: 'user' }, { how: 'now' });
  await executing;
  const oursMs = performance.now() - startedAt;
  const left = sleepers().length;
  token[Symbol.dispose]();

  const children = Array.from({ length: SHELLS }, startBare);
  await waitForSleepers(SHELLS);
  const bareStartedAt = performance.now();
  const exits = children.map(exitOf);
  for (const { pid } of children) process.kill(-pid!, 'SIGKILL');
  await Promise.all(exits);
  const bareMs = performance.now() - bareStartedAt;
  report({
    name: `${SHELLS} shells cancelled together: all dead within ${MANY_MS_MAX} ms, none left`,
    ours: left === 0 ? oursMs : Infinity,
    bare: bareMs,
    goal: { atMost: Number((MANY_MS_MAX / bareMs).toFixed(2)) },
    more: { unit: 'ms', left },
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
  const samples = await compare(() => ours('kill'), theirs);
  report({
    name: "kill of a shell, beside pi's bash tool (which kills the group and verifies nothing)",
    ours: percentile(samples.ours, 0.5),
    bare: percentile(samples.bare, 0.5),
    goal: { atMost: 6 },
    more: more(samples),
  });
}

await measureOne();
await measureMany();
await measurePeer();
