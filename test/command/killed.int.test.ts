import { spawnSync } from 'node:child_process';
import { setTimeout as wait } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { findMarked } from '../process-escapes/round.ts';
import { openEditor } from './editor.ts';
import { createHome } from './terminal.ts';

const MAX_SURVIVE_MS = 1_000;

/** How slow this machine is just now: on a quiet one this is some 40 ms. */
function measureBareStart(): number {
  const startedAt = performance.now();
  spawnSync(process.execPath, ['-e', '']);
  return performance.now() - startedAt;
}

/** Polls, because there is no event for the start and exit of another process. */
async function until(condition: () => boolean, ms: number): Promise<number> {
  const startedAt = performance.now();
  while (!condition()) {
    if (performance.now() - startedAt > ms) throw new Error(`not so after ${ms} ms: ${condition.toString()}`);
    await wait(5);
  }
  return performance.now() - startedAt;
}

test('an editor that kills the whole process group of the agent leaves nothing of a command', async () => {
  const mark = `300.${process.pid}7`;
  const command = `setsid sleep ${mark} & timeout ${mark} sleep ${mark} | tail -s ${mark}`;
  const home = createHome({ 'script.json': JSON.stringify([[{ call: 'bash', input: { command } }], ['Done.']]) });
  onTestFinished(() => home[Symbol.dispose]());
  const { child, prompt } = await openEditor(home);
  const answer = prompt('Wait.').catch((error: unknown) => error);
  // The shell, and its four: setsid's sleep, timeout, its sleep, and tail.
  await until(() => findMarked(mark).length >= 5, 20_000);
  const limitMs = Math.max(MAX_SURVIVE_MS, 10 * measureBareStart());
  expect(findMarked(mark)).toHaveLength(5);
  process.kill(-child.pid!, 'SIGKILL');
  const ms = await until(() => findMarked(mark).length === 0, 10_000);
  console.log(`editor kills the group of the agent: all dead after ${ms.toFixed(0)} ms`);
  expect(ms).toBeLessThan(limitMs);
  expect(await answer).toBeInstanceOf(Error);
  expect(findMarked(mark)).toEqual([]);
});
