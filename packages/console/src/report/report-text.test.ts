import type { StopReport } from '@whoa/core';
import { expect, test } from 'vitest';
import { describeStop, toGroups } from './report-text.ts';

const report = (change: Partial<StopReport> = {}): StopReport => ({
  reason: { kind: 'user', at: 0 },
  settledAfterMs: 1_200,
  levels: [],
  calls: [],
  cleanupErrors: [],
  isClean: true,
  ...change,
});
const call = { callId: 'c1', tool: 'bash', state: 'finished', afterMs: 5, wasWaitedFor: false } as const;

test('a clean stop is reported as clean', () => {
  expect(describeStop(report())).toBe('Stopped after 1.2 s. Nothing was left behind.');
});

test.each([
  [{ calls: [{ ...call, state: 'unknown' }] }, '1 call was abandoned and may still take effect.'],
  [{ calls: [{ ...call, survivors: 2 }] }, '2 processes may still run.'],
  [{ abandoned: [{ name: 'the planner', afterMs: 3 }] }, 'the planner was abandoned and may still run.'],
  [{ cleanupErrors: ['no'] }, '1 cleanup failed.'],
  [{}, 'Not everything could be verified.'],
] as const)('a stop that is not clean reports its worst result: %j', (change, words) => {
  expect(describeStop(report({ ...(change as Partial<StopReport>), isClean: false }))).toBe(
    `Stopped after 1.2 s. ${words}`,
  );
});

test('the uncomfortable groups come first, and every call is in one', () => {
  const states = ['finished', 'not-started', 'failed', 'interrupted', 'unknown'] as const;
  const calls = states.map((state) => ({ ...call, callId: state, state }));
  const groups = toGroups(report({ calls, reply: { characters: 170, afterMs: 4 }, isClean: false }));
  expect(groups.map(({ title }) => title)).toEqual([
    'Unknown: no longer waited for',
    'Interrupted, output kept',
    'Failed',
    'Not started',
    'Finished',
  ]);
  expect(new Set(groups.flatMap(({ items }) => items.map(({ callId }) => callId)))).toEqual(
    new Set([...states, undefined]),
  );
});

test('undone effects are listed next to their call', () => {
  const groups = toGroups(report({ calls: [{ ...call, undo: 'failed' }] }));
  expect(groups.map(({ title, items }) => [title, items[0]?.words])).toEqual([
    ['Undone, the last one first', 'The undo failed.'],
    ['Finished', 'It finished before it had to be interrupted.'],
  ]);
});
