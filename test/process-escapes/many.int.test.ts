import { CancellationToken, createRuntime } from '@whoa/core';
import { createBashTool, createContainment } from '@whoa/tools';
import { expect, test } from 'vitest';
import { isNight } from '../night.ts';
import { measureSlowness } from '../slowness.ts';
import { findMarked } from './round.ts';

const SHELLS = isNight ? 500 : 150;
const MAX_END_MS = 5_000;

test(`${SHELLS} shells that are cancelled together are all dead within 5 s`, async () => {
  await using containment = createContainment();
  const mark = `306.${process.pid}`;
  const runtime = createRuntime({ tools: [createBashTool({ containment })], concurrency: SHELLS });
  const token = new CancellationToken();
  const calls = Array.from({ length: SHELLS }, (_, i) => ({
    id: `${i}`,
    tool: 'bash',
    // Half of them have a child that leaves its group.
    input: { command: i % 2 === 0 ? `sleep ${mark}` : `setsid sleep ${mark} & wait` },
  }));
  const executing = runtime.execute(calls, { token }).catch((error: unknown) => error);
  while (findMarked(mark).length < SHELLS * 1.5) await new Promise((resolve) => setTimeout(resolve, 50));
  const startedAt = performance.now();
  token.cancel({ kind: 'user' }, { mode: 'now' });
  const { partial } = (await executing) as { partial: readonly { state: string; details: object }[] };
  const ms = performance.now() - startedAt;
  console.log(`${SHELLS} shells: all dead after ${ms.toFixed(0)} ms`);
  expect(findMarked(mark)).toEqual([]);
  expect(partial.filter(({ state }) => state === 'interrupted')).toHaveLength(SHELLS);
  expect(partial.filter(({ details }) => 'cleanup' in details)).toHaveLength(SHELLS);
  expect(ms).toBeLessThan(MAX_END_MS * measureSlowness());
  token[Symbol.dispose]();
});
