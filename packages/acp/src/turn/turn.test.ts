import { CancellationToken } from '@whoa/core';
import { expect, test } from 'vitest';
import { Turn } from './turn.ts';

function reserve(previous?: Turn) {
  const settled: Turn[] = [];
  const turn = new Turn(new CancellationToken(), { mode: 'now', previous, onSettled: (one) => settled.push(one) });
  return { turn, settled };
}

test('a turn is settled when its work has ended and its answer is out, in either order', () => {
  const v1 = reserve();
  v1.turn.take();
  v1.turn.ended();
  expect(v1.settled).toEqual([]);
  v1.turn.answered();
  expect(v1.settled).toEqual([v1.turn]);

  const v2 = reserve();
  v2.turn.take();
  v2.turn.answered();
  expect(v2.settled).toEqual([]);
  v2.turn.ended();
  expect(v2.settled).toEqual([v2.turn]);
});

test('a turn that was refused before anybody took it is settled by its answer, and cannot be taken', () => {
  const { turn, settled } = reserve();
  turn.answered();
  expect(settled).toEqual([turn]);
  expect(turn.take()).toBe(false);
});

test('a turn can be cancelled before it is taken, twice, and after the end', () => {
  const { turn } = reserve();
  turn.cancel({ kind: 'user', via: 'first' });
  turn.cancel({ kind: 'user', via: 'second' });
  expect(turn.token.reason?.via).toBe('first');
  turn.take();
  turn.ended();
  turn.answered();
  turn.cancel({ kind: 'user', via: 'third' });
  expect(turn.token.reason?.via).toBe('first');
  expect(turn.cancelCall('x', {})).toEqual({ answer: 'too-late' });
});

test('a turn waits only for one that is not settled', () => {
  const first = reserve();
  expect(reserve(first.turn).turn.previous).toBe(first.turn);
  first.turn.answered();
  expect(reserve(first.turn).turn.previous).toBeUndefined();
});
