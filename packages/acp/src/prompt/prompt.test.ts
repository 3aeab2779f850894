import { CancellationToken } from '@whoa/core';
import { expect, test } from 'vitest';
import { Prompt } from './prompt.ts';

function reserve(previous?: Prompt) {
  const settled: Prompt[] = [];
  const prompt = new Prompt(new CancellationToken(), { mode: 'now', previous, onSettled: (one) => settled.push(one) });
  return { prompt, settled };
}

test('a prompt is settled when its work has ended and its answer is out, in either order', () => {
  const v1 = reserve();
  v1.prompt.take();
  v1.prompt.ended();
  expect(v1.settled).toEqual([]);
  v1.prompt.answered();
  expect(v1.settled).toEqual([v1.prompt]);

  const v2 = reserve();
  v2.prompt.take();
  v2.prompt.answered();
  expect(v2.settled).toEqual([]);
  v2.prompt.ended();
  expect(v2.settled).toEqual([v2.prompt]);
});

test('a prompt that was refused before it was taken is settled by its response, and cannot be taken', () => {
  const { prompt, settled } = reserve();
  prompt.answered();
  expect(settled).toEqual([prompt]);
  expect(prompt.take()).toBe(false);
});

test('a prompt can be cancelled before it is taken, twice, and after the end', () => {
  const { prompt } = reserve();
  prompt.cancel({ kind: 'user', via: 'first' });
  prompt.cancel({ kind: 'user', via: 'second' });
  expect(prompt.token.reason?.via).toBe('first');
  prompt.take();
  prompt.ended();
  prompt.answered();
  prompt.cancel({ kind: 'user', via: 'third' });
  expect(prompt.token.reason?.via).toBe('first');
  expect(prompt.cancelCall('x', {})).toEqual({ result: 'too-late' });
});

test('a prompt waits only for one that is not settled', () => {
  const first = reserve();
  expect(reserve(first.prompt).prompt.previous).toBe(first.prompt);
  first.prompt.answered();
  expect(reserve(first.prompt).prompt.previous).toBeUndefined();
});
