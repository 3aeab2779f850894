import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { diffResources, listResources, waitForNoNewResources } from '../../testing/resources.ts';
import { identify, isRunning, type ProcessIdentity, readChildren, readStatus } from '../identity/identity.ts';
import { signalProcess } from '../signal.ts';
import type { ContainedProcess } from './contained.ts';
import type { Containment } from './containment.ts';
import { createContainment } from './create-containment.ts';
import { createLinuxContainment } from './linux-containment.ts';
import { detectContainments } from './technique.ts';

const env = { PATH: process.env['PATH']! };
const bash = (script: string) => ({ argv: ['bash', '-c', script] as const, env });

/** Starts a script that prints `ready`, waits for it, and collects its output. */
async function startReady(
  script: string,
  from: Containment,
): Promise<{ started: ContainedProcess; said: () => string }> {
  let said = '';
  const { promise, resolve } = Promise.withResolvers<void>();
  const started = await from.start({
    ...bash(script),
    onOutput(chunk) {
      said += Buffer.from(chunk).toString();
      if (said.includes('ready')) resolve();
    },
  });
  await promise;
  return { started, said: () => said };
}

const parseNumber = (text: string): number => Number(/(\d+)/.exec(text)![1]);
const daemon = 'setsid sleep 302 >/dev/null 2>&1 & echo ready $!; wait';

const found = await detectContainments();
const techniques = (['tags', 'cgroup'] as const).filter(
  (technique) => found.find((one) => one.technique === technique)?.isAvailable,
);

describe.each(techniques)('%s:', (technique) => {
  const containment = createContainment({ technique });
  afterAll(() => containment[Symbol.asyncDispose]());

  test('a command that is asked to stop stops by TERM, and the end is proved', async () => {
    const { started } = await startReady('sleep 302 & echo ready; wait', containment);
    expect(await started.end()).toEqual({ verified: technique, ended: 2, survivors: 0, survivorPids: [] });
    expect(await started.exited).toEqual({ code: null, signal: 'SIGTERM' });
  });

  test('a command that is killed is not asked', async () => {
    const { started } = await startReady(
      "trap 'echo asked' TERM; echo ready; while :; do sleep 302; done",
      containment,
    );
    expect(await started.end({ method: 'kill' })).toMatchObject({ verified: technique, survivors: 0 });
    expect(await started.exited).toEqual({ code: null, signal: 'SIGKILL' });
  });

  test('traps run before the end', async () => {
    const { started, said } = await startReady(
      "trap 'echo tidied; exit 0' TERM; echo ready; sleep 302 & wait",
      containment,
    );
    await started.end();
    await started.output!.waitForEnd(1_000);
    expect(said()).toContain('tidied');
    expect(await started.exited).toEqual({ code: 0, signal: null });
  });

  test('a command that a trap runs to clean up is not asked to end itself', async () => {
    await using patient = createLinuxContainment({ technique, graceMs: 60_000 });
    const cleanup = "sleep 0.2 && sh -c 'sleep 0.1 && echo clean'";
    const { started, said } = await startReady(`trap "${cleanup}; exit 6" TERM; sleep 302 & echo ready; wait`, patient);
    expect(await started.end()).toMatchObject({ verified: technique, survivors: 0 });
    await started.output!.waitForEnd(1_000);
    expect(said()).toContain('clean');
    expect(await started.exited).toEqual({ code: 6, signal: null });
  });

  test('a stopped process is woken, so that it need not be killed', async () => {
    await using patient = createLinuxContainment({ technique, graceMs: 60_000 });
    const { started } = await startReady("trap 'exit 5' TERM; echo ready; kill -STOP $$; sleep 302", patient);
    await started.end();
    expect(await started.exited).toEqual({ code: 5, signal: null });
  });

  test('ending twice, together or later, answers the same', async () => {
    const { started } = await startReady('echo ready; sleep 302; :', containment);
    const [first, second] = await Promise.all([started.end(), started.end()]);
    expect(second).toBe(first);
    expect(await started.end()).toBe(first);
  });

  test('a kill cuts the grace of an end under way short', async () => {
    await using patient = createLinuxContainment({ technique, graceMs: 600_000 });
    const { started } = await startReady("trap '' TERM; echo ready; while :; do sleep 302; done", patient);
    const asked = started.end();
    expect(await started.end({ method: 'kill' })).toBe(await asked);
    expect((await asked).survivors).toBe(0);
  });

  test('a command’s leftovers are ended after its normal end', async () => {
    const tidy = await containment.start(bash('exit 3'));
    expect(await tidy.exited).toEqual({ code: 3, signal: null });
    expect(await tidy.end()).toMatchObject({ verified: technique, ended: 0, survivors: 0 });
    const untidy = await containment.start(bash('setsid sleep 302 & exit 0'));
    await untidy.exited;
    expect(await untidy.end()).toMatchObject({ verified: technique, ended: 1, survivors: 0 });
  });

  test('ending one command leaves every other alone, also in another containment', async () => {
    await using other = createContainment({ technique });
    const mine = await startReady(daemon, containment);
    const neighbour = await startReady(daemon, containment);
    const stranger = await startReady(daemon, other);
    const left: ProcessIdentity[] = [neighbour, stranger].flatMap(({ said, started }) => [
      identify(parseNumber(said()))!,
      identify(started.pid)!,
    ]);
    expect(await mine.started.end()).toMatchObject({ ended: 2, survivors: 0 });
    expect(left.filter(isRunning)).toHaveLength(4);
    await neighbour.started.end();
    expect(left.filter(isRunning)).toHaveLength(2);
    await stranger.started.end();
    expect(left.filter(isRunning)).toHaveLength(0);
  });

  /** A shell that runs the lines it is given, each in the background, and prints the pid of the last. */
  async function startServant(): Promise<{
    started: ContainedProcess;
    run: (line: string) => Promise<ProcessIdentity>;
  }> {
    const started = await containment.start({ argv: ['bash'], env, stdio: ['pipe', 'pipe', 'ignore'] });
    const said = started.stdout![Symbol.asyncIterator]();
    return {
      started,
      async run(line) {
        started.stdin!.write(`${line} >/dev/null 2>&1 & echo $!\n`);
        return identify(parseNumber(String((await said.next()).value)))!;
      },
    };
  }

  test('processes that were started after a moment are ended, and earlier ones continue', async () => {
    const { started, run } = await startServant();
    const before = await run('setsid sleep 302');
    const moment = started.now();
    const after = [await run('setsid sleep 302'), await run("bash -c 'trap : TERM; while :; do sleep 302; done'")];
    expect(await started.endSince(moment)).toMatchObject({ verified: technique, survivors: 0 });
    expect(after.filter(isRunning)).toEqual([]);
    expect([before, identify(started.pid)!].filter(isRunning)).toHaveLength(2);
    // Again and later, nothing is left to end.
    expect(await started.endSince(moment)).toMatchObject({ verified: technique, ended: 0, survivors: 0 });
    expect(isRunning(await run('sleep 302'))).toBe(true);
    expect(await started.end()).toMatchObject({ survivors: 0 });
    expect(isRunning(before)).toBe(false);
    expect(await started.endSince(moment)).toMatchObject({ ended: 0, survivors: 0 });
  });

  test('processes that were started while other work ran are not ended, unless their parent is', async () => {
    const { started, run } = await startServant();
    const moment = started.now();
    const mine = await run("bash -c 'while :; do sleep 0.05; done'");
    const since = started.now();
    const shared = await run('sleep 302');
    const until = started.now();
    const mineToo = await run('sleep 302');
    const report = await started.endSince(moment, { except: [{ since, until }] });
    expect(report).toMatchObject({ survivors: 0, shared: 1 });
    expect([mine, shared, mineToo].map(isRunning)).toEqual([false, true, false]);
    expect(await started.endSince(moment, { except: [{ since }] })).toMatchObject({ ended: 0 });
    expect(await started.endSince(moment)).toMatchObject({ ended: 1, survivors: 0 });
    await started.end();
  });

  test('a process that starts after the known ones are dead is left alone', async () => {
    const { started, run } = await startServant();
    const moment = started.now();
    const known = await run('sleep 302');
    let later: Promise<ProcessIdentity> | undefined;
    const onDead = (): void => {
      later ??= run('sleep 302');
    };
    expect(await started.endSince(moment, { onDead })).toMatchObject({ ended: 1, survivors: 0 });
    expect([known, await later!].map(isRunning)).toEqual([false, true]);
    await started.end();
  });

  test('an end of the whole command cuts the end of a part short', async () => {
    await using patient = createLinuxContainment({ technique, graceMs: 600_000 });
    const script = "trap '' TERM; read; while :; do sleep 302; done";
    const started = await patient.start({ ...bash(script), stdio: ['pipe', 'ignore', 'ignore'] });
    const moment = started.now();
    started.stdin!.write('go\n');
    const part = started.endSince(moment);
    expect(await started.end({ method: 'kill' })).toMatchObject({ survivors: 0 });
    expect(await part).toMatchObject({ survivors: 0 });
  });

  test('a pid that was reused by another process is not signalled', async () => {
    const { started } = await startReady('echo ready; sleep 302; :', containment);
    const { pid, startTime } = identify(started.pid)!;
    expect(signalProcess({ pid, startTime: startTime - 1 }, 'SIGKILL')).toBe('gone');
    expect(isRunning({ pid, startTime: startTime - 1 })).toBe(false);
    expect(isRunning({ pid, startTime })).toBe(true);
    await started.end();
  });

  test('a command that cannot be started fails with the reason, and leaves nothing open', async () => {
    const descriptors = readdirSync('/proc/self/fd').length;
    const nowhere = containment.start({ ...bash('true'), cwd: '/no/such/folder', onOutput: () => {} });
    await expect(nowhere).rejects.toThrow(/Could not start 'bash' in \/no\/such\/folder: .*does the folder exist/);
    await new Promise((resolve) => setImmediate(resolve));
    expect(readdirSync('/proc/self/fd').length).toBe(descriptors);
  });

  test('a hundred commands leave no descriptor and no zombie behind', async () => {
    const descriptors = readdirSync('/proc/self/fd').length;
    for (let round = 0; round < 20; round++) {
      const started = await Promise.all(
        Array.from({ length: 5 }, () => startReady('echo ready; sleep 302; :', containment)),
      );
      await Promise.all(started.map(({ started }) => started.end()));
      for (const { started: contained } of started) {
        expect(readStatus(contained.pid)).toBeUndefined();
        contained.output![Symbol.dispose]();
      }
    }
    await new Promise((resolve) => setImmediate(resolve));
    // Fewer is not a leak: a descriptor of an earlier test or the test runner may have been closed meanwhile.
    expect(readdirSync('/proc/self/fd').length).toBeLessThanOrEqual(descriptors);
  });

  test('disposing a containment ends its commands, and it starts no more', async () => {
    const short = createContainment({ technique });
    const { started } = await startReady(daemon, short);
    const root = identify(started.pid)!;
    await short[Symbol.asyncDispose]();
    expect(isRunning(root)).toBe(false);
    await expect(short.start(bash('true'))).rejects.toThrow('was disposed');
  });

  test('two commands that overlap each see only their own processes', async () => {
    const first = await startReady('echo ready; sleep 0.05', containment);
    const second = await startReady('sleep 302 & echo ready; wait', containment);
    // Every end scans all processes, even those that it does not end.
    for (let round = 0; round < 3; round++) await (await containment.start(bash('sleep 0.02'))).end();
    await first.started.exited;
    expect(await first.started.end()).toMatchObject({ ended: 0, survivors: 0 });
    expect(await second.started.end()).toMatchObject({ ended: 2, survivors: 0 });
  });

  test('a watchdog that was killed is replaced immediately, and again', async () => {
    await using guarded = createContainment({ technique });
    const watchdogs = (): number[] =>
      readChildren(process.pid)
        .map(({ pid }) => pid)
        .filter((pid) => readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes('watchdog'));
    const others = watchdogs();
    const mine = (): number | undefined => watchdogs().find((pid) => !others.includes(pid));
    await (await guarded.start(bash('true'))).end();
    for (let round = 0; round < 3; round++) {
      const killed = await vi.waitUntil(mine, { timeout: 30_000 });
      process.kill(killed, 'SIGKILL');
      await expect.poll(() => [undefined, killed].includes(mine())).toBe(false);
    }
  });

  test('a workspace that cannot be protected is the fault, and not bubblewrap', async () => {
    const workspace = mkdtempSync(join(tmpdir(), 'whoa-linked-'));
    symlinkSync('real', join(workspace, '.idea'));
    await using sandboxed = createContainment({ sandbox: { kind: 'workspace', workspace } });
    const started = sandboxed.start({ ...bash('true'), onOutput() {} });
    await expect(started).rejects.toThrow(/^sandbox\.workspace: .* symbolic link/);
    rmSync(workspace, { recursive: true });
  });

  test('the output of a killed command is read to its end', async () => {
    const { started, said } = await startReady('seq 9000; echo ready; sleep 302', containment);
    await started.end({ method: 'kill' });
    await started.output!.finish(1_000);
    expect(said()).toMatch(/\n8999\n9000\nready\n$/);
    await started.output!.waitForEnd(Infinity);
    await started.output!.finish(1_000);
  });
});

test('a containment that does not work here is rejected, and never replaced in silence', async () => {
  await using wrong = createContainment({ technique: 'taskkill' });
  await expect(wrong.start(bash('true'))).rejects.toThrow(
    "The containment 'taskkill' does not work here: it is not for linux",
  );
  expect(() => createContainment({ technique: 'strong' as 'tags' })).toThrow(
    /^technique: expected 'cgroup' or .*, got "strong"$/,
  );
});

test('every containment reports whether it works here and what it verifies', () => {
  expect(found.map(({ technique }) => technique)).toContain('namespace');
  expect(found.find(({ technique }) => technique === 'tags')).toMatchObject({ isAvailable: true, verified: 'tags' });
  for (const { isAvailable, reason } of found) expect(isAvailable || reason!.length > 0).toBe(true);
});

test('a process group is ended too, but nothing is claimed', async () => {
  await using group = createContainment({ technique: 'group' });
  const { started } = await startReady("trap 'exit 4' TERM; sleep 302 & echo ready; wait", group);
  expect(await started.end()).toEqual({ verified: 'no', ended: 1, survivors: 0, survivorPids: [] });
  expect(await started.exited).toEqual({ code: 4, signal: null });
});

test.each(['tags', 'group'] as const)(
  '%s: a command that cannot be started leaves no descriptor open',
  async (technique) => {
    await using tried = createContainment({ technique });
    const open = (): number => readdirSync('/proc/self/fd').length;
    const start = (...argv: [string, ...string[]]) => tried.start({ argv, env, onOutput() {} });
    await (await start('true')).end();
    const before = open();
    for (let round = 0; round < 5; round++) await expect(start('echo', 'a\0b')).rejects.toThrow('null bytes');
    await expect.poll(() => open()).toBeLessThanOrEqual(before);
  },
);

test('a group containment that was disposed makes no folder any more', async () => {
  const short = createContainment({ technique: 'group' });
  await short[Symbol.asyncDispose]();
  expect(() => short.folder()).toThrow('was disposed');
  await expect(short.start({ ...bash('true'), onOutput() {} })).rejects.toThrow('was disposed');
});

test('an escaped process that keeps printing cannot delay the end of reading', async () => {
  // The group containment loses processes that leave the group.
  await using group = createContainment({ technique: 'group' });
  const { started, said } = await startReady('setsid yes & echo ready $!; sleep 302', group);
  await started.end({ method: 'kill' });
  await started.output!.finish(1_000);
  started.output![Symbol.dispose]();
  process.kill(parseNumber(said()), 'SIGKILL');
  const length = said().length;
  await started.output!.finish(1_000);
  expect(said()).toHaveLength(length);
});

test.each(['tags', 'group'] as const)(
  '%s: the folder of a host is in its inventory, until the end',
  async (technique) => {
    const before = listResources();
    const short = createContainment({ technique });
    short.folder();
    expect(diffResources(before)).toContainEqual(expect.stringMatching(/^temp file whoa-(host|group)-/));
    await short[Symbol.asyncDispose]();
    expect(await waitForNoNewResources(before, 5_000)).toEqual([]);
  },
);
