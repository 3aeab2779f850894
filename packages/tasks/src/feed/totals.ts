import type { World } from '@whoa/core/embed';
import type { TaskStore } from '../store.ts';
import { FeedConsumer } from './consumer.ts';
import type { FeedEvent } from './feed.ts';

/** More agents and codes than this are counted as `other`. */
const MAX_TOTALS = 1_000;
const OTHER = JSON.stringify(['other', 'other', 'other']);

/**
 * Counts the ends of a store's tasks in its totals, once each. Their names are JSON: agent, status, code.
 *
 * @returns The consumer that counts. Call `start`.
 */
export function createTotals(
  store: TaskStore,
  options: { readonly world: World; readonly onError: (error: unknown) => void },
): FeedConsumer {
  const onEvents = async (events: readonly FeedEvent[]) => countEnds(events, await store.feed.totals());
  return new FeedConsumer({ ...options, store, consumer: 'totals', kinds: ['task.ended'], onEvents });
}

function countEnds(events: readonly FeedEvent[], known: Readonly<Record<string, number>>): Record<string, number> {
  const isFull = Object.keys(known).length >= MAX_TOTALS;
  const adds: Record<string, number> = {};
  for (const { agent = '', status = '', code = '' } of events) {
    const name = JSON.stringify([agent, status, code]);
    const counted = isFull && !Object.hasOwn(known, name) ? OTHER : name;
    adds[counted] = (adds[counted] ?? 0) + 1;
  }
  return adds;
}
