import type { Json } from '@whoa/core';
import { expect, test } from 'vitest';
import { hashClaim } from '../../ledger/rules/claim-hash.ts';
import { LiveWords } from './live-words.ts';

const text = (said: string): Json => ({ type: 'text', text: said });
const SECOND = 1_000;

function begin({ isWatched = true } = {}): LiveWords {
  const words = new LiveWords({ epoch: 1, claim: 'claim' }, 4);
  words.watch(isWatched);
  return words;
}

test('words are merged, counted in UTF-16 units, and sent once', () => {
  const words = begin();
  words.add(text('Hi '), 0);
  words.add(text('😀'), 0);
  words.add({ type: 'step' }, 0);
  const events = [
    { event: text('Hi 😀'), said: 5 },
    { event: { type: 'step' }, said: 6 },
  ];
  const claim = { epoch: 1, claimHash: hashClaim('claim') };
  expect(words.next(7)).toEqual({ ...claim, kept: 0, position: 4, from: 0, to: 6, at: 7, events });
  expect(words.next(8)).toBeUndefined();
  words.add(text('x'), 8);
  expect(words.next(8)).toMatchObject({ from: 6, to: 7 });
});

test('words of parallel sub-agents are kept apart', () => {
  const words = begin();
  const of = (callId: string, said: string): Json => ({ type: 'call-event', callId, event: text(said) }) as Json;
  for (const [callId, said] of [
    ['a', '1'],
    ['b', '2'],
    ['a', '3'],
    ['a', '4'],
  ] as const)
    words.add(of(callId, said), 0);
  const { events } = words.next(0)!;
  expect(events).toEqual([
    { event: of('a', '1'), said: 1 },
    { event: of('b', '2'), said: 2 },
    { event: of('a', '34'), said: 4 },
  ]);
});

test('what was said before anybody read is in no frame', () => {
  const words = begin({ isWatched: false });
  words.add(text('before'), 0);
  words.watch(true);
  words.add(text('now'), 0);
  expect(words.next(0)).toMatchObject({ from: 6, to: 9, events: [{ event: text('now'), said: 9 }] });
});

test('the answer to an append is told, with words or without', () => {
  const words = begin();
  words.add(text('one'), 0);
  words.next(0);
  words.startWrite();
  words.endWrite({ settled: 3, kept: 3, position: 5 });
  expect(words.next(0)).toMatchObject({ kept: 3, position: 5, from: 3, to: 3, events: [] });
  expect(words.next(0)).toBeUndefined();
  words.startWrite();
  words.endWrite({ settled: 3, kept: undefined, position: 5 });
  expect(words.next(0)).toBeUndefined();
});

test('what is flushed immediately is in no frame, and frames wait until it is written', () => {
  const words = begin();
  words.add(text('said'), 0);
  words.add({ type: 'turn-end' }, 0);
  words.hold();
  words.add(text('next'), 0);
  expect(words.next(0)).toBeUndefined();
  words.startWrite();
  words.endWrite({ settled: 5, kept: 5, position: 6 });
  expect(words.next(0)).toMatchObject({ kept: 5, from: 5, to: 9, events: [{ event: text('next'), said: 9 }] });
});

test('what the store refuses does not hold frames for ever', () => {
  const words = begin();
  words.number({ type: 'question-asked' });
  words.hold();
  words.startWrite();
  words.endWrite({ settled: 1, kept: undefined, position: 4 });
  words.add(text('on'), 0);
  expect(words.next(0)).toMatchObject({ kept: 0, from: 1, to: 3 });
});

test('an event above 4 kB, and more than 64 kB for one frame, are written first', () => {
  const words = begin();
  expect(words.add(text('x'.repeat(4_000)), 0).isTooLarge).toBe(false);
  expect(words.add(text('x'.repeat(5_000)), 0).isTooLarge).toBe(true);
  expect(words.next(0)).toBeUndefined();
  words.startWrite();
  words.endWrite({ settled: 9_000, kept: 9_000, position: 5 });
  const large = Array.from({ length: 20 }, () => words.add(text('y'.repeat(4_000)), 0).isTooLarge);
  expect(large.indexOf(true)).toBe(16);
});

test('no frame leaves while something unwritten is older than a second', () => {
  const words = begin();
  words.add(text('a'), 0);
  words.startWrite();
  words.add(text('b'), SECOND);
  expect(words.next(SECOND)).toMatchObject({ to: 2 });
  words.add(text('c'), SECOND + 1);
  expect(words.next(SECOND + 1)).toBeUndefined();
  words.endWrite({ settled: 1, kept: 1, position: 5 });
  expect(words.next(SECOND + 1)).toMatchObject({ kept: 1, from: 2, to: 3 });
  words.add(text('d'), 2 * SECOND);
  expect(words.next(2 * SECOND)).toMatchObject({ kept: 1, from: 3, to: 4 });
});

test('after the answer the age counts from the oldest word that it did not have', () => {
  const words = begin();
  words.add(text('a'), 0);
  words.startWrite();
  words.add(text('b'), 500);
  words.endWrite({ settled: 1, kept: 1, position: 5 });
  words.next(500);
  words.add(text('c'), 1_501);
  expect(words.next(1_501)).toBeUndefined();
});
