import {
  FEED_KEPT_MS,
  type Feed,
  type FeedAge,
  type FeedEvent,
  type FeedKind,
  type FeedMove,
  type FeedPage,
  type FeedReader,
  type FeedTake,
  LOOK_BACK_MS,
} from '../../feed/feed.ts';
import type { Database } from './connection/database.ts';
import type { DatabaseFunctions } from './functions.ts';
import { present } from './rows.ts';
import { checkText } from './text.ts';

const PARTS: readonly number[] = [0, 1, 2, 3, 4, 5, 6, 7];
const MAX_PURGED = 10_000;

type EventRow = readonly [place: string, id: string, kind: FeedKind, tenant: string, at: number, ...(string | null)[]];
type PageRow = readonly [
  part: number,
  version: number,
  upTo: string,
  missedSince: number | null,
  events: readonly EventRow[],
  isFull: boolean,
];
type TakeRow =
  | { readonly result: 'gone' }
  | {
      readonly result: 'taken';
      readonly pages: readonly PageRow[];
      readonly holds: number;
      readonly heldUntil: number | null;
      readonly now: number;
    };

/** The feed in the database. See `sql/feed.sql`. */
export class PostgresFeed implements Feed {
  readonly #functions: DatabaseFunctions;
  readonly #database: Database;
  readonly #inbox: string;

  constructor(functions: DatabaseFunctions, database: Database, inbox: string) {
    this.#functions = functions;
    this.#database = database;
    this.#inbox = inbox;
  }

  async register({ consumer, kinds }: Parameters<Feed['register']>[0]): Promise<boolean> {
    checkText('consumer', consumer);
    const values = { p_consumer: consumer, p_kinds: kinds };
    if (await this.#functions.read<boolean>('feed', 'is_registered', values)) return false;
    return this.#database.askAlone<boolean>('fn.register_feed($1, $2, $3)', [consumer, kinds, LOOK_BACK_MS]);
  }

  async take(
    reader: FeedReader,
    options: { readonly limit: number; readonly parts?: readonly number[] },
  ): Promise<FeedTake> {
    const { limit, parts = PARTS } = options;
    const values = { ...this.#toNames(reader), lease_ms: reader.leaseMs, p_limit: limit, p_parts: parts };
    const taken = await this.#functions.read<TakeRow>('feed', 'take_feed', values);
    if (taken.result === 'gone') return taken;
    const { pages, holds, heldUntil, now } = taken;
    return { result: 'taken', pages: pages.map(toPage), holds, ...(heldUntil !== null && { heldUntil }), now };
  }

  move(reader: FeedReader, moves: readonly FeedMove[]): Promise<readonly number[]> {
    const adds = moves.flatMap(({ part, adds: all = {} }) =>
      Object.entries(all).map(([name, value]) => ({ part, name, value })),
    );
    return this.#functions.read('feed', 'move_feed', {
      ...this.#toNames(reader),
      lease_ms: reader.leaseMs,
      parts: moves.map(({ part }) => part),
      versions: moves.map(({ version }) => version),
      uptos: moves.map(({ upTo }) => upTo),
      dones: moves.map(({ at = null }) => at),
      add_parts: adds.map(({ part }) => part),
      add_names: adds.map(({ name }) => name),
      add_values: adds.map(({ value }) => value),
    });
  }

  async leave(reader: FeedReader): Promise<void> {
    await this.#functions.call('feed', 'leave_feed', this.#toNames(reader));
  }

  async purge(): Promise<void> {
    await this.#functions.read('feed', 'purge_feed', { keep_ms: FEED_KEPT_MS, p_limit: MAX_PURGED });
  }

  async forget({ tenant, conversation }: Parameters<Feed['forget']>[0]): Promise<void> {
    await this.#functions.read('feed', 'forget_feed', { p_tenant: tenant, of_conversation: conversation ?? null });
  }

  async ages(): Promise<readonly FeedAge[]> {
    const rows = await this.#functions.read<readonly [string, number | null][]>('feed', 'feed_ages', {});
    return rows.map(([consumer, oldestAt]) => ({ consumer, ...(oldestAt !== null && { oldestAt }) }));
  }

  totals(): Promise<Readonly<Record<string, number>>> {
    return this.#functions.read('feed', 'read_totals', {});
  }

  #toNames({ consumer, reader }: FeedReader): Record<'p_consumer' | 'p_reader', string> {
    return { p_consumer: consumer, p_reader: `${this.#inbox} ${reader}` };
  }
}

function toPage([part, version, upTo, missedSince, events, isFull]: PageRow): FeedPage {
  const shown = events.map((row) => [row[0], toEvent(row)] as const);
  return { part, version, upTo, events: shown, isFull, ...(missedSince !== null && { missedSince }) };
}

function toEvent([, id, kind, tenant, at, ...rest]: EventRow): FeedEvent {
  const [task, conversation, agent, status, code, question] = rest;
  const about = { task, conversation, agent, status, code, question };
  return { id, kind, tenant, at, ...(present(about) as Partial<FeedEvent>) };
}
