import assert from 'node:assert/strict';
import type { FeedEvent, FeedKind, FeedPage, FeedReader } from '../../../feed/feed.ts';
import type { TaskStore } from '../../../store.ts';
import { claim, create, fresh, LEASE_MS, TENANT } from '../../case.ts';

export const CONSUMER = 'readers';
export const DAY_MS = 86_400_000;

/** A reader that no other is. */
export const newReader = (consumer: string = CONSUMER): FeedReader => ({
  consumer,
  reader: fresh('reader'),
  leaseMs: LEASE_MS,
});

export async function register(
  store: TaskStore,
  kinds: readonly FeedKind[],
  consumer: string = CONSUMER,
): Promise<FeedReader> {
  await store.feed.register({ consumer, kinds });
  const reader = newReader(consumer);
  const found = await pages(store, reader);
  assert.ok(found.length > 0 && found.every(({ missedSince }) => missedSince !== undefined));
  await drain(store, reader);
  return reader;
}

export async function pages(store: TaskStore, reader: FeedReader, limit = 1_000): Promise<readonly FeedPage[]> {
  const taken = await store.feed.take(reader, { limit });
  return taken.result === 'taken' ? taken.pages : assert.fail('the consumer is gone');
}

/** Reads everything and moves. */
export async function drain(store: TaskStore, reader: FeedReader, limit?: number): Promise<FeedEvent[]> {
  const events: FeedEvent[] = [];
  for (;;) {
    const found = await pages(store, reader, limit);
    if (found.length === 0) return events;
    for (const page of found) {
      events.push(...page.events.map(([, event]) => event));
      const at = page.isFull ? page.events.at(-1)?.[0] : undefined;
      const { part, version, upTo } = page;
      const moved = await store.feed.move(reader, [{ part, version, upTo, ...(at !== undefined && { at }) }]);
      assert.deepEqual(moved, [part]);
    }
  }
}

export const toText = ({ kind, task = '', status = '', code = '', question = '' }: FeedEvent): string =>
  [kind, task, status, code, question.slice(task.length)].filter((one) => one !== '').join(' ');

export async function finishOne(store: TaskStore, tenant: string = TENANT): Promise<string> {
  const { id } = await create(store, { tenant });
  await store.finish((await claim(store, id)).by, { status: 'success' });
  return id;
}
