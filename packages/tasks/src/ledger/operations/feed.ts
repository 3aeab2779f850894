import {
  FEED_KEPT_MS,
  type FeedEvent,
  type FeedKind,
  type FeedMove,
  type FeedReader,
  type FeedTake,
  LOOK_BACK_MS,
} from '../../feed/feed.ts';
import { toEndCode } from '../rules/end-code.ts';
import { OWN_TENANTS } from '../rules/rules.ts';
import type { Cursor, OperationContext, StoredQuestion, StoredTask } from './tables.ts';

type Context = Pick<OperationContext, 'tables' | 'now'>;

/** Writes a change to the feed, if a consumer wants its kind. */
export function tell(event: Omit<FeedEvent, 'id' | 'at'>, { tables, now }: Context): void {
  if (event.tenant.startsWith(OWN_TENANTS)) return;
  const wanting = tables.cursors().filter(({ kinds }) => kinds.includes(event.kind));
  if (wanting.length === 0) return;
  tables.addEvent({ id: crypto.randomUUID(), at: now, ...event });
  for (const { consumer, reader } of wanting)
    if (reader !== undefined) tables.notify({ type: 'feed', consumer, part: 0, reader });
}

export function tellEnd(task: StoredTask, context: Context): void {
  const code = toEndCode(task.status, task.outcome ?? {});
  tell({ kind: 'task.ended', ...toAbout(task), status: task.status, ...(code !== undefined && { code }) }, context);
}

export function tellQuestion(kind: FeedKind, { task, id }: AboutQuestion, context: Context): void {
  tell({ kind, ...toAbout(task), question: id }, context);
}

interface AboutQuestion extends Pick<StoredQuestion, 'id'> {
  readonly task: StoredTask;
}

export function tellConversation(
  ref: { readonly tenant: string; readonly conversation: string },
  context: Context,
): void {
  tell({ kind: 'conversation.changed', tenant: ref.tenant, conversation: ref.conversation }, context);
}

function toAbout({ id, tenant, conversation, agent }: StoredTask): Omit<FeedEvent, 'id' | 'at' | 'kind'> {
  return { tenant, task: id, agent, ...(conversation !== undefined && { conversation }) };
}

/** Returns whether the consumer is new. */
export function applyRegister(
  { consumer, kinds }: { readonly consumer: string; readonly kinds: readonly FeedKind[] },
  { tables, now }: Context,
): boolean {
  const found = tables.cursors().find((one) => one.consumer === consumer);
  const wanted = [...new Set([...(found?.kinds ?? []), ...kinds])];
  if (found?.kinds.length === wanted.length) return false;
  const fresh = {
    consumer,
    version: 0,
    at: tables.lastEvent(),
    until: 0,
    seenAt: now,
    missedSince: now - LOOK_BACK_MS,
  };
  tables.saveCursor({ ...(found ?? fresh), kinds: wanted });
  return found === undefined;
}

export function applyTakeFeed(
  { consumer, reader, leaseMs }: FeedReader,
  limit: number,
  { tables, now }: Context,
): FeedTake {
  let cursor = tables.cursors().find((one) => one.consumer === consumer);
  if (cursor === undefined) return { result: 'gone' };
  const isOwn = cursor.reader === reader;
  // The clock may have been set back.
  const isFree = cursor.until <= now || cursor.until > now + leaseMs;
  if (!isFree && !isOwn) return { result: 'taken', pages: [], holds: 0, heldUntil: cursor.until, now };
  if (isFree || cursor.until < now + leaseMs / 2) {
    cursor = { ...cursor, reader, until: now + leaseMs, seenAt: now };
    tables.saveCursor(cursor);
  }
  const { at, kinds, version, missedSince } = cursor;
  const found = tables.events(at, limit);
  const events = found
    .filter(({ event: { kind } }) => kinds.includes(kind))
    .map(({ number, event }) => [`${number}`, event] as const);
  if (found.length === 0 && missedSince === undefined) return { result: 'taken', pages: [], holds: 1, now };
  const last = found.at(-1)?.number ?? at;
  const page = {
    part: 0,
    version,
    upTo: `${last}`,
    events,
    isFull: found.length === limit,
    ...(missedSince !== undefined && { missedSince }),
  };
  return { result: 'taken', pages: [page], holds: 1, now };
}

export function applyMoveFeed(
  { consumer, reader, leaseMs }: FeedReader,
  [move]: readonly FeedMove[],
  { tables, now }: Context,
): readonly number[] {
  const cursor = tables.cursors().find((one) => one.consumer === consumer);
  if (move === undefined || cursor?.reader !== reader || cursor.version !== move.version) return [];
  const at = Number(move.at ?? move.upTo);
  const { missedSince: _looked, ...rest } = cursor;
  tables.saveCursor({ ...rest, at, version: cursor.version + 1, seenAt: now, until: now + leaseMs });
  for (const [name, value] of Object.entries(move.adds ?? {})) tables.addTotal(name, value);
  return [0];
}

/** Lets another process read. Those that wait are told. */
export function applyLeaveFeed({ consumer, reader }: FeedReader, { tables }: Context): void {
  const cursor = tables.cursors().find((one) => one.consumer === consumer);
  if (cursor?.reader !== reader) return;
  const { reader: _reader, ...rest } = cursor;
  tables.saveCursor({ ...rest, until: 0 });
  tables.notify({ type: 'feed', consumer, part: 0 });
}

export function applyPurgeFeed({ tables, now }: Context): void {
  const last = tables.lastEvent();
  for (const cursor of tables.cursors()) {
    if (cursor.seenAt < now - FEED_KEPT_MS) tables.removeCursor(cursor.consumer);
    else if (isBehind(cursor, { tables, now })) {
      const { reader: _reader, ...rest } = cursor;
      tables.saveCursor({ ...rest, at: last, missedSince: now - FEED_KEPT_MS, until: 0, version: cursor.version + 1 });
    }
  }
  tables.removeEvents(Math.min(last, ...tables.cursors().map(({ at }) => at)));
}

function isBehind({ at }: Cursor, { tables, now }: Context): boolean {
  const [first] = tables.events(at, 1);
  return first !== undefined && first.event.at < now - FEED_KEPT_MS;
}
