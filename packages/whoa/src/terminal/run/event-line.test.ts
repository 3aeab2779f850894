import type { RunEvent } from '@whoa/core';
import type { TaskSummary } from '@whoa/tasks';
import { expect, test } from 'vitest';
import { formatDuration } from '../text/durations.ts';
import { describeProviderWait, eventLine } from './event-line.ts';

const screen = { columns: 60, style: (_: unknown, text: string) => text };
const line = (event: object): string | undefined => eventLine({ runId: 'r', at: 0, ...event } as RunEvent, screen);
const end = (result: object): string | undefined =>
  line({
    type: 'call-end',
    result: { callId: 'c', tool: 'bash', content: '', isError: false, endedAt: 1_500, ...result },
  });

test('a call is described by its subject', () => {
  expect(line({ type: 'call-start', tool: 'bash', callId: 'c', input: { command: 'make\ntest' } })).toBe(
    '▸ bash make ⏎ test',
  );
  expect(line({ type: 'call-start', tool: 'grep', callId: 'c', input: { pattern: 'x+', path: 'src' } })).toBe(
    '▸ grep x+ src',
  );
  expect(line({ type: 'call-start', tool: 'book', callId: 'c', input: { at: 9 } })).toBe('▸ book {"at":9}');
});

test('an end shows its status, its duration, and its reason', () => {
  expect(end({ state: 'finished', startedAt: 0 })).toBe('✔ bash 1.5 s');
  expect(end({ state: 'finished', startedAt: 0, isError: true, content: 'Exit code 3' })).toBe(
    '✘ bash 1.5 s: Exit code 3',
  );
  expect(end({ state: 'interrupted', startedAt: 0, isError: true })).toBe('■ bash interrupted 1.5 s');
  expect(end({ state: 'not-started', isError: true, content: 'Not started: denied: no' })).toBe(
    '– bash not started: denied: no',
  );
  expect(end({ state: 'unknown', startedAt: 0, isError: true, content: 'x' })).toBe('? bash unknown 1.5 s: x');
});

test('events without meaning for users get no line', () => {
  expect(line({ type: 'wave-start', wave: 0, callIds: [] })).toBeUndefined();
});

test('durations are shown in one unit', () => {
  expect([0, 999, 1_000, 59_900, 60_000, 7_200_000, 200_000_000].map(formatDuration)).toEqual([
    '0 ms',
    '999 ms',
    '1.0 s',
    '59.9 s',
    '1 min',
    '2 h',
    '2 d',
  ]);
});

test('a task that waits for its provider shows why, and when it retries', () => {
  const providerWait = { error: 'claude answered 529: Overloaded', since: 1, attempts: 2 };
  const stageAt = new Date(2026, 10, 18, 15, 4, 5).getTime();
  const task = { status: 'init', stageAt, activity: { turns: 0, calls: 0, providerWait } } as TaskSummary;
  const waits = 'waiting for the provider: claude answered 529: Overloaded, next try 15:04:05';
  expect(describeProviderWait(task)).toBe(waits);
  expect(describeProviderWait({ ...task, status: 'cancelling' })).toBeUndefined();
  expect(describeProviderWait({ ...task, activity: { turns: 0, calls: 0 } })).toBeUndefined();
});
