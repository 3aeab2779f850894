import { expect, test } from 'vitest';
import { EventLog } from './event-log.ts';
import type { RunEvent } from './events.ts';

const event = (turn: number): RunEvent => ({ type: 'turn-start', turn, runId: 'r', at: turn });

test('a reader that leaves while it waits is let go immediately', async () => {
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

test('a slow reader gets the number of events it missed and never stalls the writer', async () => {
  const log = new EventLog(10);
  const reader = log[Symbol.asyncIterator]();
  for (let turn = 0; turn < 25; turn++) log.push(event(turn));
  log.close();
  const read: RunEvent[] = [];
  for (let step = await reader.next(); !step.done; step = await reader.next()) read.push(step.value);
  expect(read[0]).toEqual({ type: 'events-skipped', count: 10, runId: 'r', at: 10 });
  expect(read.slice(1)).toEqual(Array.from({ length: 15 }, (_, i) => event(i + 10)));
});

const text = (characters: number): RunEvent => ({ type: 'text', text: 'x'.repeat(characters), runId: 'r', at: 0 });

test('events are kept by their weight too, the last one in any case', async () => {
  const log = new EventLog(1_000, 10_000);
  const update = (characters: number): RunEvent => ({
    type: 'call-update',
    callId: 'c',
    tool: 't',
    partial: { content: [{ type: 'text', text: 'x'.repeat(characters) }], details: { n: 1 } },
    runId: 'r',
    at: 0,
  });
  for (let n = 0; n < 20; n++) log.push(text(1_000));
  expect((await log[Symbol.asyncIterator]().next()).value).toMatchObject({ type: 'events-skipped', count: 12 });
  const updates = new EventLog(1_000, 10_000);
  for (let n = 0; n < 20; n++) updates.push(update(1_000));
  expect((await updates[Symbol.asyncIterator]().next()).value).toMatchObject({ type: 'events-skipped', count: 15 });
  log.push(text(1_000_000));
  const reader = log[Symbol.asyncIterator]();
  expect((await reader.next()).value).toMatchObject({ type: 'events-skipped', count: 20 });
  expect((await reader.next()).value).toMatchObject({ type: 'text' });
});

test('an input that is a circle, or cannot be looked at, is logged like any other', () => {
  const log = new EventLog();
  const circle: Record<string, unknown> = {};
  circle['self'] = circle;
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  for (const input of [circle, proxy])
    log.push({ type: 'call-start', callId: 'c', tool: 't', input, runId: 'r', at: 0 });
});

test('every read that waits ends with its reader, also one that began while another was being woken', async () => {
  const log = new EventLog();
  const reader = log[Symbol.asyncIterator]();
  const first = reader.next();
  log.push(event(1));
  // In the same tick: this one takes the event, and the next one waits.
  const second = reader.next();
  const third = reader.next();
  expect(await second).toEqual({ done: false, value: event(1) });
  await Promise.resolve();
  expect(await reader.return?.()).toEqual({ done: true, value: undefined });
  expect(await Promise.all([first, third])).toEqual([
    { done: true, value: undefined },
    { done: true, value: undefined },
  ]);
});

/** How many of `count` events like this one are kept when there is room for `maxBytes`. */
async function kept(one: RunEvent, { count, maxBytes }: { count: number; maxBytes: number }): Promise<number> {
  const log = new EventLog(1_000, maxBytes);
  for (let n = 0; n < count; n++) log.push(one);
  log.close();
  let events = 0;
  for await (const { type } of log) if (type !== 'events-skipped') events++;
  return events;
}

const started = (input: unknown): RunEvent => ({
  type: 'call-start',
  callId: 'c',
  tool: 't',
  input,
  runId: 'r',
  at: 0,
});
// The event itself, its texts and its time.
const STARTED_BYTES = 64 + 2 * ('call-start'.length + 3) + 8;

test.each<[string, RunEvent, number]>([
  ['words', text(36), 200],
  ['thoughts', { type: 'thinking', text: 'x'.repeat(36), runId: 'r', at: 0 }, 200],
  ['the end', { type: 'run-end', outcome: { text: 'x'.repeat(500) } as never, runId: 'r', at: 0 }, 64],
  ['a number', started(7), STARTED_BYTES + 8],
  ['null', started(null), STARTED_BYTES + 8],
  ['an object', started({ a: 'xx', b: [true] }), STARTED_BYTES + 64 + 4 + 64 + 8],
])('%s count with the size of their content', async (_, one, bytes) => {
  // Twice the limit is where it is cut back to the limit.
  expect(await kept(one, { count: 8, maxBytes: 4 * bytes })).toBe(4);
  expect(await kept(one, { count: 8, maxBytes: 4 * bytes + 1 })).toBe(8);
  expect(await kept(one, { count: 9, maxBytes: 4 * bytes + 1 })).toBe(4);
});

test('values below the depth limit add no weight', async () => {
  let deep: unknown = 'x'.repeat(10_000);
  for (let depth = 0; depth < 8; depth++) deep = { deep };
  const bytes = STARTED_BYTES + 8 * 64 + 20_000;
  expect(await kept(started(deep), { count: 8, maxBytes: 4 * bytes })).toBe(4);
  const deeper = STARTED_BYTES + 8 * 64 + 8;
  expect(await kept(started({ deep }), { count: 8, maxBytes: 4 * deeper })).toBe(4);
  expect(await kept(started({ deep }), { count: 8, maxBytes: 4 * deeper + 1 })).toBe(8);
});

test('exactly twice as many events as are kept are cut back', async () => {
  const log = new EventLog(2);
  for (let turn = 0; turn < 3; turn++) log.push(event(turn));
  expect((await log[Symbol.asyncIterator]().next()).value).toEqual(event(0));
  log.push(event(3));
  expect((await log[Symbol.asyncIterator]().next()).value).toMatchObject({ type: 'events-skipped', count: 2, at: 2 });
});
