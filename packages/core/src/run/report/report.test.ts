import { expect, test } from 'vitest';
import { formatStopReport, type StoppedCall, type StopReport } from './report.ts';

const call = (state: StoppedCall['state'], rest: Partial<StoppedCall> = {}): StoppedCall => ({
  callId: 'c',
  tool: 'bash',
  state,
  afterMs: 5,
  wasWaitedFor: false,
  ...rest,
});

const report = (rest: Partial<StopReport> = {}): StopReport => ({
  reason: { kind: 'user', at: 0 },
  settledAfterMs: 20,
  levels: [],
  calls: [],
  cleanupErrors: [],
  isClean: true,
  ...rest,
});

test('everything is reported in the order it happened, the end last', () => {
  const text = formatStopReport(
    report({
      reason: { kind: 'user', at: 0, message: 'enough', by: 'anna', via: 'cli' },
      levels: [
        { level: 'drain', afterMs: 0 },
        { level: 'abort', afterMs: 10 },
        { level: 'kill', afterMs: 12 },
      ],
      reply: { characters: 7, afterMs: 1 },
      calls: [call('finished', { afterMs: -3, wasWaitedFor: true }), call('unknown')],
      abandoned: [{ name: 'planner', afterMs: 20 }],
      cleanupErrors: ['bash: stuck'],
      isClean: false,
    }),
  );
  expect(text.split('\n')).toEqual([
    'Stopped after 20 ms (user: enough, by anna, via cli); 2 abandoned.',
    '  before the stop  bash (c) finished (waited for: it must not be cut)',
    '            +0 ms  drain: nothing new starts',
    '            +1 ms  reply closed after 7 characters',
    '            +5 ms  bash (c) abandoned, its outcome is unknown',
    '           +10 ms  abort: what can be interrupted stops',
    '           +12 ms  kill: nothing more is waited for',
    '           +20 ms  planner abandoned, it may still run',
    '           +20 ms  settled',
    '          cleanup  bash: stuck',
  ]);
});

test('times are whole milliseconds, or tenths of short ones', () => {
  const text = formatStopReport(
    report({ settledAfterMs: 246.860107421875, calls: [call('finished', { afterMs: 5.25 })] }),
  );
  expect(text).toMatch(/^Stopped after 247 ms .*\n +\+5\.3 ms {2}bash.*\n +\+247 ms {2}settled$/);
});

test.each<[Partial<StopReport>, string]>([
  [{}, 'Stopped after 20 ms (user); nothing was left behind.'],
  [{ isClean: false }, 'Stopped after 20 ms (user); something may be left behind.'],
  [{ reason: { kind: 'user', at: 0, by: 'anna' } }, 'Stopped after 20 ms (user, by anna); nothing was left behind.'],
  [{ reason: { kind: 'user', at: 0, via: 'cli' } }, 'Stopped after 20 ms (user, via cli); nothing was left behind.'],
])('%j is described first as %s', (rest, sentence) => {
  expect(formatStopReport(report(rest)).split('\n')[0]).toBe(sentence);
});

test.each<[StoppedCall, string]>([
  [call('failed'), 'failed'],
  [call('interrupted', { processesEnded: 1 }), 'interrupted, 1 process ended'],
  [call('interrupted', { processesEnded: 0, survivors: 0 }), 'interrupted'],
  [
    call('finished', { processesEnded: 3, survivors: 2, unverified: true }),
    'finished, 3 processes ended, 2 processes may survive, not verified',
  ],
  [call('finished', { undo: 'undone' }), 'finished, undone'],
  [call('finished', { undo: 'failed' }), 'finished, undo failed'],
  [call('finished', { undo: 'failed', undoError: 'changed since' }), 'finished, undo failed, changed since'],
  [call('not-started'), 'not started'],
])('%j is described as %s', (stopped, words) => {
  expect(formatStopReport(report({ calls: [stopped] })).split('\n')[1]).toBe(`         +5 ms  bash ${words}`);
});

test('finished calls that have no undo are named', () => {
  const lines = formatStopReport(report({ notUndone: [{ callId: 'c9', tool: 'mail' }] })).split('\n');
  expect(lines.at(-1)).toBe('       no undo  mail (c9) finished and stays');
});

test('ids distinguish calls of one tool', () => {
  const call = { tool: 'book', state: 'finished', afterMs: 5, wasWaitedFor: false } as const;
  const calls: StoppedCall[] = [
    { ...call, callId: 'c1', undo: 'undone' },
    { ...call, callId: 'c2', undo: 'failed' },
    { ...call, callId: 'c3', tool: 'look' },
  ];
  const lines = formatStopReport(report({ calls })).split('\n');
  expect(lines.slice(1, 4).map((line) => line.replace(/^.* ms {2}/, ''))).toEqual([
    'book (c1) finished, undone',
    'book (c2) finished, undo failed',
    'look finished',
  ]);
});
