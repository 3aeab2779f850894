import { expect, test } from 'vitest';
import type { CallState, Json } from '../../tool/result.ts';
import type { RunEvent, UnstampedEvent } from './events.ts';
import { formatStopReport, type StopReport } from './report.ts';
import { StopReporter } from './reporter.ts';

const reason = { kind: 'user', at: 1_000 };
const cancel: UnstampedEvent = { type: 'level-changed', level: 'abort', reason };
const late = { at: 0, state: 'finished', value: 1 } as const;

function end(callId: string, state: CallState, details?: Json): UnstampedEvent {
  const base = { callId, tool: 'bash', state, content: '', isError: false, endedAt: 1_000 };
  return { type: 'call-end', result: details === undefined ? base : { ...base, details } };
}

const inside = (tool: string, event: object): UnstampedEvent => ({
  type: 'call-event',
  callId: `${tool}-1`,
  tool,
  event: event as RunEvent,
});

function createReport(...events: UnstampedEvent[]): StopReport {
  const reporter = new StopReporter();
  for (const event of events) reporter.observe({ runId: 'r', at: 1_000, ...event } as RunEvent);
  return reporter.finish(1_004);
}

test('calls that ended before the cancel are not part of the stop', () => {
  expect(createReport(end('a', 'finished'), end('b', 'failed'), cancel)).toMatchObject({ calls: [], isClean: true });
});

test('a call that was abandoned before the cancel and may still run is named', () => {
  const report = createReport(end('a', 'unknown'), cancel);
  expect(report).toMatchObject({ isClean: false, calls: [{ callId: 'a', state: 'unknown' }] });
  expect(formatStopReport(report).split('\n')[0]).toBe('Stopped after 4 ms (user); 1 abandoned.');
});

test('an abandoned call that has returned since is not reported as abandoned', () => {
  const returned: UnstampedEvent = { type: 'call-ended-late', callId: 'a', tool: 'bash', late };
  expect(createReport(end('a', 'unknown'), returned, cancel)).toMatchObject({ calls: [], isClean: true });
  expect(createReport(cancel, end('a', 'unknown'), returned)).toMatchObject({
    calls: [{ callId: 'a' }],
    isClean: false,
  });
});

test('processes that survived an earlier call are named', () => {
  const survived = { cleanup: { verified: 'tags', ended: 2, survivors: 1 } };
  expect(createReport(end('a', 'finished', survived), cancel)).toMatchObject({
    isClean: false,
    calls: [{ survivors: 1 }],
  });
});

test('processes whose end this machine cannot prove are not called ended', () => {
  const report = createReport(cancel, end('a', 'interrupted', { cleanup: { verified: 'no', ended: 2, survivors: 0 } }));
  expect(report).toMatchObject({ isClean: false, calls: [{ unverified: true }] });
  expect(formatStopReport(report)).toMatch(
    /something may be left behind.*\n.*\n.*bash interrupted, 2 processes ended, not verified/,
  );
});

test('calls of sub-agents are reported by their path, at any depth', () => {
  const report = createReport(
    cancel,
    inside('editor', inside('writer', { ...end('c7', 'unknown'), at: 1_002 })),
    inside('editor', { type: 'call-waiting', callId: 'pay', tool: 'pay', level: 'abort', reason, until: 2_000 }),
    inside('editor', end('pay', 'finished')),
    inside('editor', { type: 'cleanup-error', callId: 'x', tool: 'lock', error: new Error('stuck') }),
    inside('editor', { type: 'undo-end', callId: 'pay', tool: 'bash', state: 'undone' }),
    end('editor-1', 'interrupted'),
  );
  expect(report.isClean).toBe(false);
  expect(report.cleanupErrors).toEqual(['editor › lock: stuck']);
  expect(report.calls.map(({ callId, tool }) => `${callId} ${tool}`)).toEqual([
    'editor-1/writer-1/c7 editor › writer › bash',
    'editor-1/pay editor › bash',
    'editor-1 bash',
  ]);
  expect(report.calls[1]).toMatchObject({ wasWaitedFor: true, undo: 'undone' });
});

const at = (ms: number, event: object): UnstampedEvent => ({ ...event, at: ms }) as unknown as UnstampedEvent;

test('levels and the reply are reported in time since the first, and under the first reason', () => {
  const words = (text: string): UnstampedEvent => ({ type: 'text', text });
  const turnEnd = (stopReason: 'stop' | 'aborted'): UnstampedEvent => ({
    type: 'turn-end',
    turn: 1,
    message: { role: 'assistant', content: [], stopReason },
  });
  const report = createReport(
    words('never counted'),
    { type: 'turn-start', turn: 1 },
    words('ab'),
    words('cde'),
    at(900, { type: 'level-changed', level: 'drain', reason }),
    at(903.26, turnEnd('aborted')),
    at(912.4, { type: 'level-changed', level: 'abort', reason: { kind: 'shutdown', at: 0 } }),
  );
  expect(report).toStrictEqual({
    reason,
    settledAfterMs: 104,
    levels: [
      { level: 'drain', afterMs: 0 },
      { level: 'abort', afterMs: 12 },
    ],
    reply: { characters: 5, afterMs: 3.3 },
    calls: [],
    cleanupErrors: [],
    isClean: true,
  });
  expect(createReport(cancel, words('x'), turnEnd('stop'))).not.toHaveProperty('reply');
});

test('a planner that finishes its turn instead of stopping is named, with the time that it took', () => {
  const turn: UnstampedEvent = {
    type: 'turn-end',
    turn: 1,
    message: { role: 'assistant', content: [], stopReason: 'stop' },
  };
  const report = createReport(cancel, { ...turn, at: 6_000 } as UnstampedEvent);
  expect(report).toMatchObject({ planner: { afterMs: 5_000 }, isClean: true });
  expect(formatStopReport(report)).toMatch(/\+5000 ms {2}planner finished its turn$/m);
  expect(createReport(turn, cancel)).not.toHaveProperty('planner');
});

test('abandoned work other than calls is named by its path, and makes the stop unclean', () => {
  const left: UnstampedEvent = { type: 'work-abandoned', name: 'planner' };
  const report = createReport(at(990, cancel), left, inside('editor', { ...left, at: 1_002 }));
  expect(report).toMatchObject({
    abandoned: [
      { name: 'planner', afterMs: 10 },
      { name: 'editor › planner', afterMs: 12 },
    ],
    isClean: false,
  });
});

test('objects that only look like events are skipped', () => {
  const odd = [null, 7, { type: 'call-end' }, { type: 'cleanup-error', tool: 'x' }, { type: 'call-end', result: null }];
  const report = createReport(cancel, ...odd.map((event) => inside('odd', event as object)));
  expect(report).toMatchObject({ calls: [], cleanupErrors: [], isClean: true });
});

test.each<[Json | undefined, object, boolean]>([
  [undefined, {}, true],
  [null, {}, true],
  ['cleanup', {}, true],
  [{ other: 1 }, {}, true],
  [{ cleanup: null }, {}, true],
  [{ cleanup: { ended: '2', survivors: '1', verified: 'tags' } }, {}, true],
  [{ cleanup: { ended: 2, survivors: 0, verified: 'tags' } }, { processesEnded: 2, survivors: 0 }, true],
  [{ cleanup: { survivors: 1 } }, { survivors: 1 }, false],
  [{ cleanup: { verified: 'no' } }, { unverified: true }, false],
])('details of %j report the processes %j', (details, said, clean) => {
  const report = createReport(cancel, end('a', 'finished', details));
  expect(report.calls).toStrictEqual([
    { callId: 'a', tool: 'bash', state: 'finished', afterMs: 0, wasWaitedFor: false, ...said },
  ]);
  expect(report.isClean).toBe(clean);
});

test('an undo is reported with how its call had ended, also long before the cancel', () => {
  const undo = (callId: string, state: 'undone' | 'failed'): UnstampedEvent => ({
    type: 'undo-end',
    callId,
    tool: 'bash',
    state,
  });
  const base = { tool: 'bash', afterMs: 0, wasWaitedFor: false };
  const report = createReport(end('a', 'failed'), cancel, undo('a', 'undone'), undo('b', 'undone'));
  expect(report.calls).toStrictEqual([
    { ...base, callId: 'a', state: 'failed', undo: 'undone' },
    { ...base, callId: 'b', state: 'finished', undo: 'undone' },
  ]);
  expect(report.isClean).toBe(true);
  expect(createReport(cancel, undo('a', 'failed')).isClean).toBe(false);
});

test('a report is frozen through and through', () => {
  const report = createReport(cancel, end('a', 'finished'));
  expect([report, report.levels, report.calls, report.calls[0]].every(Object.isFrozen)).toBe(true);
});
