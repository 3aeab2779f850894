import type { FeedEvent } from '../../feed/feed.ts';
import type { Cursor, FeedTables } from '../operations/tables.ts';

/** The feed in memory: a counter is its order. */
export function feedTables(): FeedTables {
  const cursors = new Map<string, Cursor>();
  const totals = new Map<string, number>();
  let last = 0;
  let events: { readonly number: number; readonly event: FeedEvent }[] = [];
  return {
    addEvent: (event) => void events.push({ number: ++last, event }),
    lastEvent: () => last,
    events(after, limit) {
      const first = events.findIndex(({ number }) => number > after);
      return first === -1 ? [] : events.slice(first, first + limit);
    },
    removeEvents: (upTo) => void (events = events.filter(({ number }) => number > upTo)),
    forgetEvents({ tenant, conversation }) {
      const isMeant = (event: FeedEvent) =>
        event.tenant === tenant && (conversation === undefined || event.conversation === conversation);
      events = events.filter(({ event }) => !isMeant(event));
    },
    cursors: () => [...cursors.values()].toSorted((a, b) => (a.consumer < b.consumer ? -1 : 1)),
    saveCursor: (cursor) => void cursors.set(cursor.consumer, cursor),
    removeCursor: (consumer) => void cursors.delete(consumer),
    addTotal: (name, value) => void totals.set(name, (totals.get(name) ?? 0) + value),
    totals: () => Object.fromEntries(totals),
  };
}
