import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createContainment, endLeftovers } from '@whoa/tools';
import { expect, onTestFinished, test } from 'vitest';
import { createHome } from '../command/terminal.ts';
import { forChange } from '../night.ts';
import { ESCAPES } from '../process-escapes/escapes.ts';
import { findMarked } from '../process-escapes/round.ts';

const MAX_SURVIVE_MS = 1_000;
const CLASSES = ['plain child', 'double-fork daemon', 'ignores TERM', 'env -i setsid, orphaned', 'stealth daemon'];

let hosts = 0;

const createMark = (): string => `301.${process.pid}${++hosts}`;

function spawnHost(way: string, commands: readonly string[], env: NodeJS.ProcessEnv = {}): ChildProcess {
  const host = spawn(
    process.execPath,
    ['--conditions=@whoa/source', join(import.meta.dirname, 'host.ts'), way, ...commands],
    {
      detached: true,
      env: { ...process.env, ...env },
      stdio: ['pipe', 'ignore', way === 'crash' ? 'ignore' : 'inherit'],
    },
  );
  onTestFinished(() => void host.kill('SIGKILL'));
  return host;
}

/** Starts a host with some of the escapes, and waits until all of it is up. */
async function startHost(
  way: string,
): Promise<{ host: ChildProcess; mark: string; directory: string; processes: number }> {
  const mark = createMark();
  const classes = ESCAPES.filter(({ name }) => CLASSES.includes(name));
  const host = spawnHost(
    way,
    classes.map(({ command }) => command(mark)),
  );
  const processes = classes.reduce((sum, escapeKind) => sum + escapeKind.processes, 0);
  // The host has the mark itself.
  await until(() => findMarked(mark).length > processes, 20_000);
  return { host, mark, directory: findHostDirectory(host.pid!)!, processes };
}

const listHostDirectories = (): string[] => readdirSync(tmpdir()).filter((name) => name.startsWith('whoa-host-'));

function findHostDirectory(pid: number): string | undefined {
  return listHostDirectories()
    .map((name) => join(tmpdir(), name))
    .find((folder) => {
      try {
        const record = JSON.parse(readFileSync(join(folder, 'host.json'), 'utf8')) as { host: { pid: number } };
        return record.host.pid === pid;
      } catch {
        return false;
      }
    });
}

async function until(condition: () => boolean, ms: number): Promise<number> {
  const startedAt = performance.now();
  while (!condition()) {
    if (performance.now() - startedAt > ms) throw new Error(`not so after ${ms} ms: ${condition.toString()}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  return performance.now() - startedAt;
}

function findWatchdog({ pid }: ChildProcess): number | undefined {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').trim().split(' ').map(Number);
  return children.find((child) => {
    try {
      return readFileSync(`/proc/${child}/cmdline`, 'latin1').includes('watchdog');
    } catch {
      // It has ended.
      return false;
    }
  });
}

/** A watchdog that is just being started has no name yet. */
async function waitForWatchdog(host: ChildProcess): Promise<number> {
  await until(() => findWatchdog(host) !== undefined, 20_000);
  return findWatchdog(host)!;
}

/** Kills a host and its watchdog, which it would start again. */
async function killBoth(host: ChildProcess): Promise<void> {
  const watchdog = await waitForWatchdog(host);
  host.kill('SIGSTOP');
  process.kill(watchdog, 'SIGKILL');
  host.kill('SIGKILL');
  await until(() => host.signalCode !== null, 5_000);
}

/** Once it catches SIGTERM it is up. */
function isListening(watchdog: number): boolean {
  const caught = /^SigCgt:\t(\w+)/m.exec(readFileSync(`/proc/${watchdog}/status`, 'latin1'))?.[1];
  return ((BigInt(`0x${caught}`) >> 14n) & 1n) === 1n;
}

/** How slow this machine is just now: on a quiet one this is some 40 ms. */
function measureBareStart(): number {
  const startedAt = performance.now();
  spawnSync(process.execPath, ['-e', '']);
  return performance.now() - startedAt;
}

const WAYS: readonly (readonly [title: string, way: string, end: (host: ChildProcess) => void])[] = [
  ['is killed by SIGKILL', 'wait', (host) => host.kill('SIGKILL')],
  ['is killed with its whole process group, as editors do', 'wait', (host) => process.kill(-host.pid!, 'SIGKILL')],
  ['gets a SIGTERM', 'wait', (host) => host.kill('SIGTERM')],
  ['gets a Ctrl-C', 'wait', (host) => process.kill(-host.pid!, 'SIGINT')],
  ['leaves when its client closes the pipe', 'wait', (host) => host.stdin!.end()],
  ['calls process.exit', 'exit', (host) => host.stdin!.write('go')],
  ['crashes', 'crash', (host) => host.stdin!.write('go')],
];

test.each(forChange(WAYS, ([title]) => /SIGKILL|group|Ctrl-C|crashes/.test(title)))(
  'no process survives a host that %s',
  async (title, way, end) => {
    const { host, mark, directory } = await startHost(way);
    await until(() => isListening(findWatchdog(host)!), 20_000);
    const limitMs = Math.max(MAX_SURVIVE_MS, 10 * measureBareStart());
    end(host);
    const ms = await until(() => findMarked(mark).length === 0, 10_000);
    console.log(`host ${title}: all dead after ${ms.toFixed(0)} ms`);
    expect(ms).toBeLessThan(limitMs);
    await until(() => !existsSync(directory), 5_000);
  },
);

test('no process survives a host that is killed before its watchdog is up', async () => {
  const { host, mark, directory } = await startHost('wait');
  host.kill('SIGKILL');
  await until(() => findMarked(mark).length === 0 && !existsSync(directory), 20_000);
});

test('processes of a host whose watchdog was killed too are found and ended at the next start', async () => {
  const { host, mark, directory } = await startHost('wait');
  await killBoth(host);
  expect(findMarked(mark).length).toBeGreaterThan(0);
  expect((await endLeftovers()).ended).toBeGreaterThan(0);
  expect(findMarked(mark)).toEqual([]);
  expect(existsSync(directory)).toBe(false);
});

test('the next whoa ends the processes of one that was killed with its watchdog, and reports it', async () => {
  using home = createHome({ 'hello.json': '[["Hello."]]' });
  // No other host finds them first.
  const TMPDIR = home.folder.path;
  const mark = createMark();
  const host = spawnHost('wait', [`sleep ${mark}`], { TMPDIR });
  await until(() => findMarked(mark).length > 1, 20_000);
  await killBoth(host);
  expect(findMarked(mark)).not.toEqual([]);
  const run = ['run', '--sandbox', 'none', '--model', `scripted:${home.folder.at('hello.json')}`, 'hello'];
  expect(home.whoa(run, { env: { TMPDIR } }).stderr).toMatch(
    /killed with its watchdog; its processes, now ended: [12]\n/,
  );
  expect(findMarked(mark)).toEqual([]);
  expect(home.whoa(run, { env: { TMPDIR } }).stderr).not.toContain('watchdog');
});

test('the leftovers of a host that still runs are left alone', async () => {
  const { host, mark, directory, processes } = await startHost('wait');
  await endLeftovers();
  // A starting process has no mark for a moment; an ended one never has it again.
  await until(() => findMarked(mark).length > processes, 20_000);
  expect(existsSync(directory)).toBe(true);
  host.kill('SIGKILL');
  await until(() => findMarked(mark).length === 0 && !existsSync(directory), 5_000);
});

test('ending a command that is a host itself ends everything of that host, and its watchdog', async () => {
  await using containment = createContainment();
  const mark = `307.${process.pid}`;
  const commands = ESCAPES.filter(({ name }) => CLASSES.includes(name)).map(({ command }) => command(mark));
  const host = join(import.meta.dirname, 'host.ts');
  const outer = await containment.start({
    argv: [process.execPath, '--conditions=@whoa/source', host, 'wait', ...commands],
    env: { PATH: process.env['PATH']! },
    // Otherwise it would exit at the end of its input.
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  await until(() => findMarked(mark).length > commands.length * 2, 20_000);
  const directory = findHostDirectory(outer.pid)!;
  expect(await outer.end({ method: 'kill' })).toMatchObject({ verified: await containment.ready(), survivors: 0 });
  expect(findMarked(mark)).toEqual([]);
  expect(existsSync(directory)).toBe(true);
  await endLeftovers();
  expect(existsSync(directory)).toBe(false);
});

const isFrozen = (pid: number): boolean => /\) T /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));

test('a command that freezes its host again and again is ended, and the host continues', async () => {
  const mark = createMark();
  const host = spawnHost('wait', [`sleep ${mark} & while :; do kill -STOP $PPID; sleep 0.05; done`]);
  await until(() => isFrozen(host.pid!), 20_000);
  await until(() => findMarked(mark).every((pid) => pid === host.pid), 20_000);
  await until(() => !isFrozen(host.pid!), 20_000);
});

test('the watchdog ends a command whose stop was begun by a host that is too busy to finish it', async () => {
  const mark = createMark();
  const host = spawnHost('busy', [`trap '' TERM; while :; do sleep ${mark}; done`]);
  await until(() => findMarked(mark).length > 1, 20_000);
  host.stdin!.write('go');
  await until(() => findMarked(mark).every((pid) => pid === host.pid), 20_000);
  expect(host.exitCode).toBe(null);
});

test('a watchdog that a command froze is continued, and replaced if that happens again', async () => {
  const mark = createMark();
  const host = spawnHost('wait', [`sleep ${mark}`]);
  await until(() => findMarked(mark).length > 1, 20_000);
  const watchdog = await waitForWatchdog(host);
  await until(() => isListening(watchdog), 20_000);
  process.kill(watchdog, 'SIGSTOP');
  await until(() => !isFrozen(watchdog), 20_000);
  await until(() => {
    const current = findWatchdog(host);
    if (current === watchdog) freezeIfAlive(watchdog);
    return current !== undefined && current !== watchdog;
  }, 20_000);
  host.kill('SIGKILL');
  await until(() => findMarked(mark).length === 0, 20_000);
});

/** It may be replaced, and so killed, at any moment. */
function freezeIfAlive(pid: number): void {
  try {
    process.kill(pid, 'SIGSTOP');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
