import type { Message } from '@whoa/core';

/** A session as it is kept. `messages` is at every moment a valid history, also if the process dies right after. */
export interface SessionRecord {
  readonly id: string;
  readonly cwd: string;
  readonly additionalDirectories: readonly string[];
  readonly title?: string;
  /** What the person chose, by the id of the setting. */
  readonly settings: Readonly<Record<string, string>>;
  readonly messages: readonly Message[];
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** A session without its messages. */
export type SessionSummary = Omit<SessionRecord, 'messages' | 'settings' | 'createdAt'>;

export interface SessionPage {
  readonly sessions: readonly SessionSummary[];
  readonly nextCursor?: string;
}

/** Keeps sessions, so that they survive the process. Ids come from outside: a store must bear any text. */
export interface SessionStore {
  load(id: string): Promise<SessionRecord | undefined>;
  /** Replaces the whole record, all of it or nothing. */
  save(record: SessionRecord): Promise<void>;
  /** The latest first. */
  list(filter?: { readonly cwd?: string; readonly cursor?: string }): Promise<SessionPage>;
  remove(id: string): Promise<void>;
}

const PAGE_SESSIONS = 50;

/** Cuts a page out of all summaries, the latest first. A cursor is the place of the last session of the page before. */
export function pageOf(
  all: readonly SessionSummary[],
  { cwd, cursor }: { readonly cwd?: string; readonly cursor?: string },
): SessionPage {
  const sorted = all
    .filter((session) => cwd === undefined || session.cwd === cwd)
    .toSorted((a, b) => b.updatedAt - a.updatedAt || (a.id < b.id ? -1 : 1));
  const after = cursor === undefined ? undefined : readCursor(cursor);
  const from = after === undefined ? 0 : sorted.findIndex((session) => isBehind(session, after));
  const sessions = from === -1 ? [] : sorted.slice(from, from + PAGE_SESSIONS);
  const last = sessions.at(-1);
  const hasMore = from !== -1 && from + PAGE_SESSIONS < sorted.length;
  return { sessions, ...(hasMore && last && { nextCursor: `${last.updatedAt}~${last.id}` }) };
}

/** A record without what a list does not show. */
export function summaryOf(record: SessionRecord): SessionSummary {
  const { messages, settings, createdAt, ...summary } = record;
  return summary;
}

type Position = Pick<SessionSummary, 'updatedAt' | 'id'>;

function isBehind(session: Position, position: Position): boolean {
  if (session.updatedAt !== position.updatedAt) return session.updatedAt < position.updatedAt;
  return session.id > position.id;
}

function readCursor(cursor: string): Position {
  const [, updatedAt, id] = /^(\d+(?:\.\d+)?)~(.*)$/s.exec(cursor) ?? [];
  if (updatedAt === undefined || id === undefined) throw new RangeError('cursor: use one that a list has answered');
  return { updatedAt: Number(updatedAt), id };
}
