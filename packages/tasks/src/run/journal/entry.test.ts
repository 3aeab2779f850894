import type { Json } from '@whoa/core';
import { expect, test } from 'vitest';
import { entryFor, type SaidEvent, withEntry } from './entry.ts';

const together = (...events: Json[]): Json[] =>
  events
    .map((event, said): SaidEvent => ({ event, said }))
    .reduce<SaidEvent[]>(withEntry, [])
    .map(({ event }) => event);
const text = (said: string): Json => ({ type: 'text', text: said });

test('words that follow each other become one entry', () => {
  expect(together(text('a'), text('b'), { type: 'thinking', text: 'c' }, text('d'))).toEqual([
    text('ab'),
    { type: 'thinking', text: 'c' },
    text('d'),
  ]);
});

test('a turn that has ended needs no drafts of its words', () => {
  expect(together({ type: 'turn-start' }, text('a'), { type: 'turn-end', message: 'a' })).toEqual([
    { type: 'turn-start' },
    { type: 'turn-end', message: 'a' },
  ]);
});

test('only the newest state of a call is kept, and none once it has ended', () => {
  const update = (callId: string, n: number): Json => ({ type: 'call-update', callId, n });
  expect(together(update('a', 1), update('b', 1), update('a', 2))).toEqual([update('b', 1), update('a', 2)]);
  const end: Json = { type: 'call-end', result: { callId: 'a' } };
  expect(together(update('a', 1), update('b', 1), end)).toEqual([update('b', 1), end]);
});

test('errors are kept as data', () => {
  const error = Object.assign(new Error('no luck'), { code: 'LUCK' });
  expect(entryFor({ type: 'call-ended-late', late: { error } })).toEqual({
    type: 'call-ended-late',
    late: { error: { message: 'no luck', code: 'LUCK' } },
  });
});

test('details that are too large are cut, and their size is shown', () => {
  const details = { log: 'x'.repeat(300_000) };
  expect(entryFor({ type: 'call-end', result: { details } })).toEqual({
    type: 'call-end',
    result: { details: { cut: true, bytes: 300_010 } },
  });
});
