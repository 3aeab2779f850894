import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Writable } from 'node:stream';
import { expect, test } from 'vitest';
import { findRunningChildren, readOrNothing } from './running-children.ts';

// The program that the shell becomes never reads how its children ended. The first one ends only then: a shell would read it.
const PARENT = 'cat <&3 & sleep 1000 & echo ready; exec tail -f /dev/null';

test.runIf(process.platform === 'linux')('finds the child that runs, and not the one that has ended', async () => {
  const parent = spawn('sh', ['-c', PARENT], { stdio: ['ignore', 'pipe', 'inherit', 'pipe'] });
  await once(parent.stdout!, 'data');
  const pid = parent.pid!;
  const children = readOrNothing(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean);
  const [ended, running] = children as [string, string];
  await expect.poll(() => readOrNothing(`/proc/${pid}/cmdline`)).toMatch(/^tail/);
  (parent.stdio[3] as Writable).end();
  await expect.poll(() => readOrNothing(`/proc/${ended}/stat`)).toMatch(/\) Z/);
  await expect.poll(() => readOrNothing(`/proc/${running}/cmdline`)).toBe('sleep 1000 ');
  try {
    expect(findRunningChildren(pid)).toEqual([`${running} sleep 1000`]);
  } finally {
    process.kill(Number(running), 'SIGKILL');
    const exit = once(parent, 'exit');
    parent.kill('SIGKILL');
    await exit;
  }
});
