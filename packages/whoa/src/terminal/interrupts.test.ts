import { EventEmitter } from 'node:events';
import { CancellationToken } from '@whoa/core';
import { VirtualClock } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { type InterruptOptions, listenForInterrupts } from './interrupts.ts';

function setUp(more: Partial<InterruptOptions> = {}) {
  const clock = new VirtualClock();
  const signals = new EventEmitter();
  const token = new CancellationToken({ clock });
  const exits: number[] = [];
  const listening = listenForInterrupts({
    token,
    clock,
    signals: signals as unknown as NodeJS.Process,
    exit: () => exits.push(clock.now()),
    ...more,
  });
  return { clock, signals, token, exits, listening };
}

test('Ctrl-C once stops now, twice kills and exits after a last wait', async () => {
  const { clock, signals, token, exits, listening } = setUp();
  const levels: (string | undefined)[] = [];
  for (let press = 0; press < 2; press++) {
    signals.emit('SIGINT');
    levels.push(token.level);
  }
  expect(levels).toEqual(['abort', 'kill']);
  expect(token.reason).toMatchObject({ kind: 'user', via: 'Ctrl-C' });
  await clock.advance(2_999);
  expect(exits).toHaveLength(0);
  await clock.advance(1);
  expect(exits).toHaveLength(1);
  listening[Symbol.dispose]();
  token[Symbol.dispose]();
});

test('a third Ctrl-C exits immediately', () => {
  const waits: number[] = [];
  const { signals, token, exits, listening } = setUp({ onLastWait: (ms) => waits.push(ms) });
  for (let press = 0; press < 2; press++) signals.emit('SIGINT');
  expect({ waits, exits }).toEqual({ waits: [3_000], exits: [] });
  signals.emit('SIGINT');
  expect(exits).toHaveLength(1);
  listening[Symbol.dispose]();
  token[Symbol.dispose]();
});

test('the first Ctrl-C uses the configured mode, and the next one escalates', () => {
  const { signals, token, listening } = setUp({ first: 'graceful' });
  const levels = [0, 1, 2].map(() => {
    signals.emit('SIGINT');
    return token.level;
  });
  expect(levels).toEqual(['drain', 'abort', 'kill']);
  listening[Symbol.dispose]();
  token[Symbol.dispose]();
});

test('a Ctrl-C escalates a stop that was started elsewhere', () => {
  const { signals, token, listening } = setUp({ level: () => 'drain' });
  signals.emit('SIGINT');
  expect(token.level).toBe('abort');
  listening[Symbol.dispose]();
  token[Symbol.dispose]();
});

test('a Ctrl-C after the ladder has reached kill exits too', async () => {
  const { clock, signals, token, exits, listening } = setUp();
  signals.emit('SIGINT');
  await clock.advance(2_000);
  expect(token.level).toBe('kill');
  signals.emit('SIGINT');
  await clock.advance(3_000);
  expect(exits).toHaveLength(1);
  listening[Symbol.dispose]();
  token[Symbol.dispose]();
});

test.each([
  ['SIGTERM', 'shutdown'],
  ['SIGHUP', 'disconnect'],
])('%s stops the run now', (signal, kind) => {
  const { signals, token, listening } = setUp();
  signals.emit(signal);
  expect({ level: token.level, reason: token.reason }).toMatchObject({ level: 'abort', reason: { kind, via: signal } });
  listening[Symbol.dispose]();
  token[Symbol.dispose]();
});

test('a run that settled in time leaves no listener and no timer', () => {
  const { clock, signals, token, listening } = setUp();
  for (let press = 0; press < 3; press++) signals.emit('SIGINT');
  listening[Symbol.dispose]();
  token[Symbol.dispose]();
  expect(signals.eventNames()).toEqual([]);
  expect(clock.pending).toBe(0);
});
