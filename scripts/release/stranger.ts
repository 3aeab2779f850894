// The first steps of a new user after a release, with nothing installed: the demo with npx, then the first program of the docs.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import { firstProgram } from '../packed.ts';

const START_MS = 300_000;
const STOP_MS = 30_000;
const POLL_INTERVAL_MS = 100;

/** Runs `npx whoa demo` in an empty folder, opens its page, and ends it as Ctrl-C does. */
export async function tryDemo(work: string, env: NodeJS.ProcessEnv): Promise<void> {
  const cwd = join(work, 'demo');
  mkdirSync(cwd);
  const from = performance.now();
  const child = spawn('npx', ['--yes', 'whoa', 'demo', '--json'], {
    cwd,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
    // Ctrl-C reaches npx and the command.
    detached: true,
  });
  const ended = once(child, 'exit') as Promise<[number | null]>;
  const kill = setTimeout(() => process.kill(-child.pid!, 'SIGKILL'), START_MS);
  try {
    const [line] = (await Promise.race([
      once(createInterface(child.stdout), 'line'),
      ended.then(([code]) => Promise.reject(new Error(`npx whoa demo ended with ${code} before its page was ready`))),
    ])) as [string];
    const { url } = JSON.parse(line) as { url: string };
    const page = await fetch(url);
    const text = await page.text();
    if (!page.ok || !text.includes('<script')) throw new Error(`npx whoa demo: its page is ${page.status}: ${text}`);
    console.log(`npx whoa demo: its page is ready after ${((performance.now() - from) / 1_000).toFixed(1)} s`);
    process.kill(-child.pid!, 'SIGINT');
    await waitUntilGone(child.pid!);
  } finally {
    clearTimeout(kill);
    if (isRunning(child.pid!)) process.kill(-child.pid!, 'SIGKILL');
  }
}

/** Waits until npx, the command and everything they started have ended. */
async function waitUntilGone(group: number): Promise<void> {
  const until = performance.now() + STOP_MS;
  while (isRunning(group)) {
    if (performance.now() > until) throw new Error('npx whoa demo did not end after Ctrl-C');
    await wait(POLL_INTERVAL_MS);
  }
}

function isRunning(group: number): boolean {
  try {
    return process.kill(-group, 0);
  } catch {
    return false;
  }
}

/** Follows 'Your first agent' of the start page literally. */
export function tryFirstSteps(work: string, env: NodeJS.ProcessEnv): void {
  const cwd = join(work, 'first');
  mkdirSync(cwd);
  const run = (file: string, ...args: string[]): string =>
    execFileSync(file, args, { cwd, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
  run('npm', 'install', '@whoa/core', 'zod');
  writeFileSync(join(cwd, 'first.ts'), firstProgram());
  const printed = run('node', '--no-warnings', 'first.ts');
  if (!printed.includes('nothing was left behind')) throw new Error(`the first program printed ${printed}`);
  console.log(`the first program of the start page prints\n${printed.trim().replace(/^/gm, '  | ')}`);
}
