import type { Message } from '@whoa/core';

/** A saved session. `messages` is always a valid history, even if the process dies right after a save. */
export interface SessionRecord {
  readonly id: string;
  readonly cwd: string;
  readonly additionalDirectories: readonly string[];
  readonly title?: string;
  /** The user's choices, by the id of the setting. */
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

/** Keeps sessions, so that they survive the process. Ids come from clients: a store must accept any string. */
export interface SessionStore {
  /** Returns a stored session, if it exists. */
  load(id: string): Promise<SessionRecord | undefined>;
  /** Replaces the whole record atomically. */
  save(record: SessionRecord): Promise<void>;
  /** The latest first. */
  list(filter?: { readonly cwd?: string; readonly cursor?: string }): Promise<SessionPage>;
  /** Removes a session. */
  remove(id: string): Promise<void>;
}

const PAGE_SESSIONS = 50;

/**
 * Returns one page of all summaries, the latest first. A cursor is the position of the last session of the previous
 * page.
 */
export function toPage(
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

/** Returns a record without the fields that a list does not show. */
export function toSummary(record: SessionRecord): SessionSummary {
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
  if (updatedAt === undefined || id === undefined)
    throw new RangeError('cursor: expected a cursor that `list` returned');
  return { updatedAt: Number(updatedAt), id };
}
