// The cost of a sandbox: `true` in one, started, ended and verified by a containment, compared with bare bubblewrap
// with the same arguments, and with a bare spawn.
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createContainment } from '@whoa/tools';
import { createSandbox } from '../packages/tools/src/sandbox/sandbox.ts';
import { percentile, report } from './measure/measure.ts';

const ROUNDS = 150;
const WARM_UP = 10;
const folder = mkdtempSync(join(tmpdir(), 'whoa-bench-'));
const workspace = join(folder, 'workspace');
mkdirSync(workspace);
const options = { kind: 'workspace', workspace } as const;
const containment = createContainment({ sandbox: options });
const sandbox = createSandbox(options)!;
await sandbox.open(folder);
const env = { PATH: '/usr/bin:/bin' };

async function ours(): Promise<void> {
  const command = await containment.start({ argv: ['true'], env });
  await command.exited;
  await command.end();
}

async function bareBubblewrap(): Promise<void> {
  const entrance = sandbox.enter({ argv: ['true'], env, cwd: workspace, stdio: 'ignore', folder });
  const [file = '', ...args] = entrance.argv;
  const child = spawn(file, args, { env: {}, stdio: entrance.stdio, detached: true });
  entrance[Symbol.dispose]();
  await new Promise((resolve) => child.once('exit', resolve));
}

async function bare(): Promise<void> {
  const child = spawn('true', [], { env, stdio: 'ignore', detached: true });
  await new Promise((resolve) => child.once('exit', resolve));
}

async function time(work: () => Promise<void>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

try {
  const samples = { ours: [] as number[], bubblewrap: [] as number[], bare: [] as number[] };
  for (let round = -WARM_UP; round < ROUNDS; round++) {
    const times = { ours: await time(ours), bubblewrap: await time(bareBubblewrap), bare: await time(bare) };
    if (round < 0) continue;
    samples.ours.push(times.ours);
    samples.bubblewrap.push(times.bubblewrap);
    samples.bare.push(times.bare);
  }
  const name = 'true in a sandbox until its end is proved, p50 ms, beside';
  const p50 = percentile(samples.ours, 0.5);
  const p95 = percentile(samples.ours, 0.95).toFixed(1);
  const bubblewrap = percentile(samples.bubblewrap, 0.5);
  report({
    name: `${name} bare bubblewrap with the same arguments`,
    ours: p50,
    bare: bubblewrap,
    goal: { atMost: 1.2 },
    more: { p95, bareP95: percentile(samples.bubblewrap, 0.95).toFixed(1) },
  });
  report({
    name: `${name} a bare spawn`,
    ours: p50,
    bare: percentile(samples.bare, 0.5),
    goal: { atMost: 4.5 },
    more: { p95 },
  });
} finally {
  await containment[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
}
