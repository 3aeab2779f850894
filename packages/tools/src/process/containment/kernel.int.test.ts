// What the kernel ends: a cgroup and a PID namespace around a command.
import { existsSync, readFileSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { identify, isRunning } from '../identity/identity.ts';
import { createHostTag } from '../identity/tags.ts';
import { findHostCgroup } from './cgroup.ts';
import { createContainment } from './create-containment.ts';
import { createLinuxContainment } from './linux-containment.ts';
import { detectContainments } from './technique.ts';

const env = { PATH: process.env['PATH']! };
const available = (await detectContainments())
  .filter(({ isAvailable }) => isAvailable)
  .map(({ technique }) => technique);
const kernel = (['cgroup', 'namespace'] as const).filter((technique) => available.includes(technique));

test('the default is a cgroup where one can be created, otherwise tags; isolate is a namespace', async () => {
  await using containment = createContainment();
  expect(await containment.ready()).toBe(available.includes('cgroup') ? 'cgroup' : 'tags');
  await using isolated = createContainment({ isolate: true });
  expect(await isolated.ready().catch(() => 'rejected')).toBe(
    available.includes('namespace') ? 'namespace' : 'rejected',
  );
  expect(() => createContainment({ isolate: true, technique: 'tags' })).toThrow(/^technique: expected 'namespace'/);
});

test.each(kernel)('%s: a command that is stopped while it starts never runs', async (technique) => {
  await using containment = createContainment({ technique });
  const folder = containment.folder();
  for (let round = 0; round < 40; round++) {
    const file = `${folder}/ran-${round}`;
    const command = await containment.start({ argv: ['/bin/sh', '-c', `sleep 0.2; : > ${file}`], env });
    for (let turns = 0; turns < round % 8; turns++) await nextTurn();
    const report = await command.end({ method: round % 2 === 0 ? 'kill' : 'ask' });
    expect(report).toMatchObject({ verified: technique, survivors: 0 });
    expect(existsSync(file)).toBe(false);
    expect(isRunning({ pid: command.pid, startTime: identify(command.pid)?.startTime ?? 0 })).toBe(false);
  }
});

test.each(kernel)('%s: a part of a command is ended while the rest continues', async (technique) => {
  await using containment = createLinuxContainment({ technique, graceMs: 60_000 });
  const script = 'while read line; do sleep 303 >/dev/null & echo started; done';
  const command = await containment.start({ argv: ['bash', '-c', script], env, stdio: ['pipe', 'pipe', 'ignore'] });
  const lines = command.stdout![Symbol.asyncIterator]();
  const startOne = async (): Promise<void> => {
    command.stdin!.write('go\n');
    await lines.next();
  };
  await startOne();
  const moment = command.now();
  await startOne();
  await startOne();
  expect(await command.endSince(moment)).toMatchObject({ ended: 2, survivors: 0 });
  expect(await command.endSince(moment)).toMatchObject({ ended: 0, survivors: 0 });
  expect(await command.end({ method: 'kill' })).toMatchObject({ verified: technique, ended: 2, survivors: 0 });
});

test.runIf(kernel.includes('cgroup'))('no cgroup is left when a containment was disposed', async () => {
  const containment = createContainment({ technique: 'cgroup' });
  await containment.start({ argv: ['sleep', '303'], env });
  const { cgroup } = JSON.parse(readFileSync(`${containment.folder()}/host.json`, 'utf8')) as { cgroup: string };
  expect(existsSync(cgroup)).toBe(true);
  await containment[Symbol.asyncDispose]();
  expect(existsSync(cgroup)).toBe(false);
});

test.runIf(kernel.includes('cgroup') && process.getuid?.() === 0)(
  'a command that writes itself into another cgroup is the limit of a cgroup, and ends in a namespace',
  async () => {
    const base = findHostCgroup(createHostTag())!.replace(/\/whoa-\d+$/, '');
    for (const technique of kernel) {
      await using containment = createContainment({ technique });
      const script = `echo 0 > ${base}/cgroup.procs; setsid sleep 303 >/dev/null 2>&1 & echo up; wait`;
      const command = await containment.start({
        argv: ['bash', '-c', script],
        env,
        stdio: ['ignore', 'pipe', 'ignore'],
      });
      await command.stdout![Symbol.asyncIterator]().next();
      const [escaped] = readFileSync(`/proc/${command.pid}/task/${command.pid}/children`, 'latin1').split(' ');
      const left = identify(Number(escaped))!;
      expect(await command.end({ method: 'kill' })).toMatchObject({ verified: technique });
      expect(isRunning(left)).toBe(technique === 'cgroup');
      if (isRunning(left)) process.kill(left.pid, 'SIGKILL');
    }
  },
);
