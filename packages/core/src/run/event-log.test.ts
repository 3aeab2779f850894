import { expect, test } from 'vitest';
import { EventLog } from './event-log.ts';
import type { RunEvent } from './events.ts';

const event = (turn: number): RunEvent => ({ type: 'turn-start', turn, runId: 'r', at: turn });

test('a reader that leaves while it waits is let go at once', async () => {
  const log = new EventLog();
  const reader = log[Symbol.asyncIterator]();
  const waiting = reader.next();
  expect(await reader.return?.()).toEqual({ done: true, value: undefined });
  expect(await waiting).toEqual({ done: true, value: undefined });
  log.push(event(1));
  expect(await reader.next()).toEqual({ done: true, value: undefined });
});

test('a reader that waits is woken by the next event and by the end', async () => {
  const log = new EventLog();
  const reader = log[Symbol.asyncIterator]();
  const first = reader.next();
  log.push(event(1));
  expect(await first).toEqual({ done: false, value: event(1) });
  const last = reader.next();
  log.close();
  expect(await last).toEqual({ done: true, value: undefined });
  log.push(event(2));
  expect(await reader.next()).toEqual({ done: true, value: undefined });
});

test('a slow reader is told how many events it missed and never stalls the writer', async () => {
  const log = new EventLog(10);
  const reader = log[Symbol.asyncIterator]();
  for (let turn = 0; turn < 25; turn++) log.push(event(turn));
  log.close();
  const read: RunEvent[] = [];
  for (let step = await reader.next(); !step.done; step = await reader.next()) read.push(step.value);
  expect(read[0]).toEqual({ type: 'events-skipped', count: 10, runId: 'r', at: 10 });
  expect(read.slice(1)).toEqual(Array.from({ length: 15 }, (_, i) => event(i + 10)));
});
