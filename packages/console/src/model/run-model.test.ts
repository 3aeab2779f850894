import type { JournalEvent, TaskRecord } from '@whoa/tasks';
import { expect, test } from 'vitest';
import { RunModel } from './run-model.ts';

interface Entry {
  readonly type: string;
  readonly [field: string]: unknown;
}

function read(...events: readonly Entry[]): RunModel {
  const run = new RunModel();
  for (const [index, event] of events.entries()) {
    run.apply({ at: 1_000 + index, event: event as unknown as JournalEvent });
  }
  return run;
}

const message = (content: readonly object[], stopReason = 'stop'): Entry => ({
  type: 'turn-end',
  turn: 1,
  message: { role: 'assistant', content, stopReason },
});
const call = { callId: 'c1', tool: 'bash' };

test('words come in pieces, and the end of the turn replaces them', () => {
  const run = read({ type: 'turn-start', turn: 1 }, { type: 'text', text: 'Hel' }, { type: 'text', text: 'lo' });
  expect(run.turns[0]?.text).toBe('Hello');
  run.apply({
    at: 2_000,
    event: message([{ type: 'text', text: 'Hello you' }]) as unknown as JournalEvent,
  });
  expect(run.turns).toMatchObject([{ text: 'Hello you', endedAt: 2_000, isCut: false }]);
});

test('a reply that was cut off keeps its text', () => {
  const run = read({ type: 'turn-start', turn: 1 }, message([{ type: 'text', text: 'Hal' }], 'aborted'));
  expect(run.turns[0]).toMatchObject({ text: 'Hal', isCut: true });
});

test('a turn that is repeated when the provider is back is another one, and its words count as cut off', () => {
  const run = read(
    { type: 'turn-start', turn: 1 },
    { type: 'text', text: 'Hal' },
    { type: 'turn-postponed', error: 'overloaded', since: 1, attempts: 1, until: 9 },
    { type: 'run-start', agent: 'a' },
    { type: 'turn-start', turn: 1 },
    { type: 'text', text: 'Hello' },
  );
  expect(run.turns).toMatchObject([
    { text: 'Hal', isCut: true, endedAt: 1_002 },
    { text: 'Hello', isCut: false },
  ]);
});

test('a call goes from planned to its end, with its input and its times', () => {
  const run = read(
    { type: 'turn-start', turn: 1 },
    { type: 'call-planned', ...call },
    message([{ type: 'call', ...call, input: { command: 'ls' } }], 'tool-use'),
    { type: 'call-start', ...call, input: { command: 'ls' }, at: 1_500 },
  );
  expect(run.calls.get('c1')).toMatchObject({ state: 'running', startedAt: 1_500, turn: 1 });
  const result = { ...call, state: 'finished', content: 'a', isError: false, startedAt: 1_500, endedAt: 1_700 };
  run.apply({ at: 1_800, event: { type: 'call-end', result } as JournalEvent });
  expect(run.calls.get('c1')).toMatchObject({ state: 'finished', endedAt: 1_700 });
});

test('a question is open until it is answered', () => {
  const question = { callId: 'c1', tool: 'bash', effects: 'execute', title: 'bash', fields: [], always: '' };
  const run = read({ type: 'approval-requested', ...call }, { type: 'approval-question', id: 'q', question });
  expect(run.openQuestions).toMatchObject([{ id: 'q', question: { callId: 'c1' } }]);
  run.apply({
    at: 0,
    event: { type: 'approval-answered', ...call, approved: true } as JournalEvent,
  });
  expect(run.openQuestions).toEqual([]);
});

test('a call that a lost worker left open ends with what is known', () => {
  const run = read({ type: 'call-intent', ...call }, { type: 'call-end', result: { callId: 'c1', state: 'unknown' } });
  expect(run.calls.get('c1')).toMatchObject({ state: 'unknown', tool: 'bash' });
});

test('a run inside a call is a separate run', () => {
  const nested = (event: Entry): Entry => ({ type: 'call-event', ...call, event });
  const run = read(
    { type: 'call-start', ...call },
    nested({ type: 'run-start', agent: 'researcher' }),
    nested({ type: 'turn-start', turn: 1 }),
    nested({ type: 'text', text: 'found' }),
    nested({ type: 'call-start', callId: 'c9', tool: 'grep' }),
  );
  const inner = run.calls.get('c1')?.nested;
  expect(inner).toMatchObject({ agent: 'researcher', turns: [{ text: 'found' }] });
  expect([...inner!.calls.keys()]).toEqual(['c9']);
  expect(run.calls.size).toBe(1);
});

test('a steering message comes before the turn that read it', () => {
  const run = read(
    { type: 'turn-start', turn: 1 },
    { type: 'steer-delivered', message: { role: 'user', content: 'faster' } },
    { type: 'turn-start', turn: 2 },
  );
  expect(run.turns.map(({ steered }) => steered)).toEqual([[], ['faster']]);
});

test("a reply of the application's own loop reads like an agent's", () => {
  const chunks = (...list: readonly Entry[]): Entry => ({ type: 'ui-chunks', chunks: list });
  const run = read(
    chunks({ type: 'start-step' }, { type: 'text-start', id: 't' }, { type: 'text-delta', id: 't', delta: 'Let me ' }),
    chunks(
      { type: 'text-delta', id: 't', delta: 'see.' },
      { type: 'data-unheard-of', data: 1 },
      { type: 'tool-input-start', toolCallId: 'c1', toolName: 'mail' },
      { type: 'tool-input-available', toolCallId: 'c1', toolName: 'mail', input: { to: 'ada' } },
      { type: 'tool-output-available', toolCallId: 'c1', output: { sent: 1 }, preliminary: true },
    ),
  );
  expect(run.turns).toMatchObject([{ number: 1, text: 'Let me see.' }]);
  expect(run.calls.get('c1')).toMatchObject({ tool: 'mail', state: 'running', input: { to: 'ada' }, startedAt: 1_001 });
  const more = chunks(
    { type: 'tool-output-error', toolCallId: 'c1', errorText: 'Outcome unknown' },
    { type: 'finish-step' },
    { type: 'start-step' },
    { type: 'text-delta', id: 'u', delta: 'draft' },
    { type: 'reset-step' },
    { type: 'text-delta', id: 'v', delta: 'Half an ans' },
  );
  run.apply({ at: 2_000, event: more as unknown as JournalEvent });
  expect(run.calls.get('c1')).toMatchObject({ state: 'failed', endedAt: 2_000 });
  expect(run.turns[1]).toMatchObject({ number: 2, text: 'Half an ans' });
  // Only the report shows how the stop ended it.
  const reason = { kind: 'user', at: 1_900 };
  const stop = { reason, levels: [{ level: 'abort', afterMs: 0 }], calls: [{ callId: 'c1', state: 'unknown' }] };
  run.settle({ outcome: { status: 'cancelled', isComplete: false, stopReport: stop } } as unknown as TaskRecord);
  expect(run.calls.get('c1')).toMatchObject({ state: 'unknown' });
  expect(run.levels).toEqual([{ level: 'abort', at: 1_900, reason }]);
  expect(run.turns.map(({ isCut }) => isCut)).toEqual([false, true]);
});

test.each<Entry>([
  { type: 'unheard-of' },
  { type: 'ui-chunks', chunks: [{ type: 'text-delta', delta: 'no step' }, { type: 'tool-output-denied' }] },
  { type: 'text', text: 'before any turn' },
  { type: 'call-update', ...call, partial: {} },
  { type: 'undo-end', ...call, state: 'undone' },
  { type: 'journal-truncated', entries: 3, bytes: 9 },
])('an entry that comes out of nowhere is taken: %j', (entry) => {
  expect(() => read(entry)).not.toThrow();
});
