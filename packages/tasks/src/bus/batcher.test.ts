import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Batcher } from './batcher.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const GAP_MS = 10;
/** How long an answer takes. */
const TRIP_MS = 3;

/** A batcher that sends one batch at a time, and the batches it has sent. */
function createBatcher(): { ask: (request: number) => Promise<number>; sent: (readonly number[])[] } {
  const sent: (readonly number[])[] = [];
  const batcher = new Batcher<number, number>({
    ask: async (requests) => {
      sent.push(requests);
      await new Promise((resolve) => setTimeout(resolve, TRIP_MS));
      return requests.map((one) => -one);
    },
    maxInFlight: 1,
    gapMs: GAP_MS,
  });
  return { ask: (request) => batcher.ask(request), sent };
}

test('a lone request never waits, no matter how many follow', async () => {
  const { ask, sent } = createBatcher();
  const from = performance.now();
  for (const request of [1, 2, 3]) {
    const answer = ask(request);
    await vi.advanceTimersByTimeAsync(TRIP_MS);
    expect(await answer).toBe(-request);
  }
  expect(sent).toEqual([[1], [2], [3]]);
  expect(performance.now() - from).toBe(3 * TRIP_MS);
});

test('after several at the same time, the next wait for each other, and no longer than the gap', async () => {
  const { ask, sent } = createBatcher();
  const answers = [ask(1), ask(2)];
  await vi.advanceTimersByTimeAsync(TRIP_MS);
  answers.push(ask(3));
  await vi.advanceTimersByTimeAsync(GAP_MS - TRIP_MS - 1);
  answers.push(ask(4));
  expect(sent).toEqual([[1, 2]]);
  await vi.advanceTimersByTimeAsync(1);
  expect(sent).toEqual([
    [1, 2],
    [3, 4],
  ]);
  await vi.advanceTimersByTimeAsync(TRIP_MS);
  expect(await Promise.all(answers)).toEqual([-1, -2, -3, -4]);
});

test('requests during a batch go together in the next one', async () => {
  const { ask, sent } = createBatcher();
  const answers = [ask(1)];
  await vi.advanceTimersByTimeAsync(1);
  answers.push(ask(2), ask(3));
  await vi.advanceTimersByTimeAsync(TRIP_MS - 1);
  expect(sent).toEqual([[1], [2, 3]]);
  await vi.advanceTimersByTimeAsync(TRIP_MS);
  expect(await Promise.all(answers)).toEqual([-1, -2, -3]);
});
