import { expect, test } from 'vitest';
import { fuzzConversations } from './conversations.ts';
import { fuzzOwnLoops } from './own-loop.ts';
import { fuzzRuns } from './runs.ts';

test('in random runs, what is reported is what happened, and nothing starts after a stop', async () => {
  const { problems, counts } = await fuzzRuns({ from: 1, count: 200 });
  expect(problems).toEqual([]);
  for (const move of ['cancelled', 'success', 'streams', 'bad-arguments', 'cancel in a hook', 'undo'])
    expect(counts[move], move).toBeGreaterThan(0);
});

test('in random conversations, every message gets one reply, and one run runs at a time', async () => {
  const { problems, counts } = await fuzzConversations({ from: 1, count: 100 });
  expect(problems).toEqual([]);
  for (const move of ['answered', 'cancelled', 'remove while a message is received'])
    expect(counts[move], move).toBeGreaterThan(0);
});

test('in random own loops, every request is accepted, and what is reported is what happened', async () => {
  const { problems, counts } = await fuzzOwnLoops({ from: 1, count: 20 });
  expect(problems).toEqual([]);
  for (const move of ['bad-arguments', 'streams', 'approved']) expect(counts[move], move).toBeGreaterThan(0);
});
