import type { Feed, FeedReader } from '../feed/feed.ts';
import { applyLeaveFeed, applyMoveFeed, applyPurgeFeed, applyRegister, applyTakeFeed } from './operations/feed.ts';
import type { FeedTables, OperationContext } from './operations/tables.ts';

interface LocalFeedParts {
  /** Where this process hears of changes. */
  readonly inbox: string;
  readonly tables: FeedTables;
  query<T>(work: () => T): Promise<T>;
}

/** The feed of a local store: one part, and the number of an event is its place. */
export function createLocalFeed(
  engine: LocalFeedParts,
  transact: <T>(work: (context: OperationContext) => T) => Promise<T>,
): Feed {
  const { inbox, tables } = engine;
  const own = (reader: FeedReader): FeedReader => ({ ...reader, reader: `${inbox} ${reader.reader}` });
  return {
    register: (request) => transact((context) => applyRegister(request, context)),
    take: (reader, { limit }) => transact((context) => applyTakeFeed(own(reader), limit, context)),
    move: (reader, moves) => transact((context) => applyMoveFeed(own(reader), moves, context)),
    leave: (reader) => transact((context) => applyLeaveFeed(own(reader), context)),
    purge: () => transact((context) => applyPurgeFeed(context)),
    forget: (target) => transact((context) => context.tables.forgetEvents(target)),
    ages: () =>
      engine.query(() =>
        tables.cursors().map(({ consumer, at }) => {
          const [first] = tables.events(at, 1);
          return { consumer, ...(first !== undefined && { oldestAt: first.event.at }) };
        }),
      ),
    totals: () => engine.query(() => tables.totals()),
  };
}
