import type { RunEvent, StopLevel, StopMode, Tool } from '@whoa/core';
import { systemClock } from '@whoa/core/embed';
import { expect, test } from 'vitest';
import { commandName } from '../command-name.ts';
import { Screen } from '../screen.ts';
import { RunView } from './run-view.ts';

function setUp(first?: StopMode) {
  const lines: string[] = [];
  const sink = { write: (text: string) => lines.push(text.trimEnd()), on: () => undefined };
  const screen = new Screen({ stdout: sink, stderr: sink });
  const tools = [
    { name: 'bash' },
    { name: 'pay', whenCancelled: 'finish' },
    { name: 'ask', answeredBy: 'user' },
  ] as unknown as Tool[];
  const view = new RunView(screen, { tools, first });
  const at = systemClock.now();
  const show = (event: object): void => view.show({ runId: 'r', at, ...event } as RunEvent);
  const call = (tool: string): void => show({ type: 'call-start', callId: tool, tool, input: {} });
  const stop = (level: StopLevel, { via = 'Ctrl-C', after = 0 } = {}): string => {
    show({ type: 'level-changed', level, reason: { kind: 'user', via, at }, at: at + after });
    return lines.at(-1)!;
  };
  return { view, lines, call, stop, show };
}

test('each Ctrl-C immediately shows what the stop waits for, how long at most, and what the next one does', () => {
  const { call, stop } = setUp();
  call('bash');
  expect(stop('abort')).toBe('■ stopping now: interrupting bash, 2 s at most · Ctrl-C again kills it');
  expect(stop('kill', { after: 1_000 })).toBe('■ killing');
});

test('with a graceful stopMode there is one step more', () => {
  const { call, stop } = setUp('graceful');
  call('bash');
  expect(stop('drain')).toBe('■ stopping: waiting for bash, 10 s at most · Ctrl-C again interrupts it');
  expect(stop('abort', { after: 1_000 })).toBe(
    '■ stopping now: interrupting bash, 2 s at most · Ctrl-C again kills it',
  );
  expect(stop('kill', { after: 2_000 })).toBe('■ killing');
});

test('the bounds are those of the ladder that was configured', () => {
  const { call, stop } = setUp({ drainMs: 30_000, abortMs: 5_000 });
  call('bash');
  expect(stop('drain')).toContain('waiting for bash, 30 s at most');
  // It got there by itself.
  expect(stop('abort', { after: 30_000 })).toContain('interrupting bash, 5 s at most');
});

test('a stop from elsewhere shows what it waits for; only its initiator sees for how long', () => {
  const { call, stop } = setUp();
  call('bash');
  expect(stop('drain', { via: 'whoa cancel' })).toBe('■ stopping: waiting for bash · Ctrl-C again interrupts it');
});

test('a stop waits for nothing where nothing runs', () => {
  const { call, stop, show, view } = setUp();
  call('bash');
  show({ type: 'call-end', result: { callId: 'bash', tool: 'bash', state: 'finished', content: '', endedAt: 0 } });
  expect(stop('drain')).toBe('■ stopping');
  expect(view.level).toBe('drain');
});

test('a call that must finish is not reported as interrupted, and can be left', () => {
  const { call, stop, view, lines } = setUp();
  view.begin('t-12345678-abc');
  call('pay');
  expect(stop('drain')).toBe('■ stopping');
  expect(stop('abort')).toBe('■ stopping now');
  expect(stop('kill')).toBe('■ killing: pay must not be interrupted · Ctrl-C again exits without it');
  view.lastWait(3_000);
  expect(lines.at(-1)).toBe('■ whoa exits in 3 s at most · Ctrl-C again exits now');
  view.leave();
  expect(lines.at(-1)).toBe(
    `Left while pay has not ended; its processes are ended. '${commandName()} cancel t-12345678' settles the task.`,
  );
});

test("an agent's question is shown with the way to answer it", () => {
  const { view, lines, show } = setUp();
  view.begin('t-12345678-abc', { isQuiet: true });
  const content = ['bash', 'ask'].map((tool) => ({
    type: 'call',
    callId: tool,
    tool,
    input: { question: 'Which\u001b?' },
  }));
  show({ type: 'turn-end', turn: 1, message: { role: 'assistant', content, stopReason: 'tool-use' } });
  expect(lines.filter((line) => line.startsWith('?'))).toEqual([
    `? ask: Which<U+001B>? · to answer: ${commandName()} approve t-12345678`,
  ]);
});
