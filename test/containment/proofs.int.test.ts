// Whatever is reported as verified must be verified: where it cannot be, the report must show that.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createContainment, endLeftovers } from '@whoa/tools';
import { expect, onTestFinished, test } from 'vitest';
import { isNight } from '../night.ts';
import { ESCAPES } from '../process-escapes/escapes.ts';
import { findMarked } from '../process-escapes/round.ts';
import { findTechniques } from '../process-escapes/table.ts';

const IS_ROOT = process.getuid?.() === 0;
const NODE = [process.execPath, '--conditions=@whoa/source'];
const SAY = join(import.meta.dirname, 'say-cleanup.ts');
const HOST = join(import.meta.dirname, '../host-death/host.ts');
const IN_A_NAMESPACE = ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc', '--'];
const found = await findTechniques();

/** Commands that end just when they are ended are rare. */
const ROUNDS = isNight ? 40 : 10;

let marks = 0;
const createMark = (): string => `303.${process.pid}${++marks}`;

function say(argv: readonly string[]): { verified: string; survivors: number; ended: number } {
  const [file = '', ...args] = argv;
  const { stdout, stderr } = spawnSync(file, args, { encoding: 'utf8', timeout: 60_000 });
  expect(stdout, stderr).toMatch(/^\{/);
  return JSON.parse(stdout) as { verified: string; survivors: number; ended: number };
}

/** A host in a separate PID namespace that runs one command and shares the folder for temporary files. */
async function startElsewhere(mark: string): Promise<void> {
  const argv: string[] = [...IN_A_NAMESPACE, ...NODE, HOST, 'wait', `sleep ${mark}; :`];
  const host = spawn(argv[0]!, argv.slice(1), { stdio: ['pipe', 'ignore', 'inherit'] });
  onTestFinished(async () => {
    host.kill('SIGKILL');
    await expect.poll(() => findMarked(mark).length).toBe(0);
  });
  // unshare, the host, the shell and the sleep itself.
  await expect.poll(() => findMarked(mark).length).toBeGreaterThanOrEqual(4);
}

test.runIf(IS_ROOT)('a host in another PID namespace is never taken for dead', async () => {
  const mark = createMark();
  await startElsewhere(mark);
  const before = findMarked(mark);
  await endLeftovers();
  await using containment = createContainment();
  await (await containment.start({ argv: ['true'], env: {} })).end();
  expect(findMarked(mark)).toEqual(before);
});

test.runIf(IS_ROOT && isNight)(
  'a host inside another PID namespace leaves the folder of one outside alone',
  async () => {
    await using containment = createContainment();
    await (await containment.start({ argv: ['true'], env: {} })).end();
    expect(say([...IN_A_NAMESPACE, ...NODE, SAY, 'true'])).toMatchObject({ survivors: 0 });
    expect(existsSync(containment.folder())).toBe(true);
  },
);

test.each(found.map(({ technique }) => technique))(
  '%s: a host inside a command leaves the outer one alone, and itself',
  async (technique) => {
    await using containment = createContainment({ technique });
    let said = '';
    const inner = await containment.start({
      argv: [NODE[0]!, NODE[1]!, SAY, 'echo inner'],
      env: { PATH: process.env['PATH']! },
      onOutput: (chunk) => (said += Buffer.from(chunk).toString()),
    });
    expect(await inner.exited).toEqual({ code: 0, signal: null });
    await inner.end();
    await inner.output!.finish(1_000);
    inner.output![Symbol.dispose]();
    expect(said).toMatch(/"survivors":0/);
    expect(existsSync(containment.folder())).toBe(true);
  },
  30_000,
);

test.each(found.map(({ technique }) => technique))(
  '%s: of commands that ended by themselves nothing is called ended, and of one that was ended only its own',
  async (technique) => {
    await using containment = createContainment({ technique });
    const start = (command: string) =>
      containment.start({ argv: ['/bin/sh', '-c', command], env: { PATH: process.env['PATH']! } });
    for (let i = 0; i < ROUNDS; i++) {
      const commands = await Promise.all([start(':'), start(':'), start(':')]);
      const reports = commands.map(async (command) => {
        await command.exited;
        return command.end();
      });
      expect(await Promise.all(reports)).toMatchObject(reports.map(() => ({ ended: 0, survivors: 0 })));
    }
    const mark = createMark();
    const slow = await start(`sleep ${mark}; :`);
    const isUp = (pid: number): boolean => readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith('sleep');
    await expect.poll(() => findMarked(mark).some(isUp)).toBeTruthy();
    expect(await slow.end()).toMatchObject({ ended: 2, survivors: 0 });
  },
);

const hidden = 'mount -t proc -o hidepid=2 proc /proc && exec setpriv --bounding-set -sys_ptrace "$@"';

test.runIf(IS_ROOT)('where /proc hides processes nothing is called proved', () => {
  const mark = createMark();
  const guarded = ESCAPES.find(({ name }) => name === 'daemon that guards its memory')!;
  const command = guarded.command(mark).replace(/; sleep .*/, '');
  const argv = ['unshare', '--mount', '--pid', '--fork', '--kill-child', 'sh', '-c', hidden, 'sh', ...NODE, SAY];
  expect(say([...argv, command, 'tags']).verified).toBe('no');
  // A process that may inspect every other one can see everything.
  const all = argv.map((word) => word.replace(' --bounding-set -sys_ptrace', ' --no-new-privs'));
  expect(say([...all, command, 'tags'])).toMatchObject({ verified: 'tags', survivors: 0 });
});
