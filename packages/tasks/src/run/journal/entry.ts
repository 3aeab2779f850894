import type { Json } from '@whoa/core';
import { MAX_DETAILS_BYTES } from '@whoa/core/internal';
import type { JournalEntry } from '../../task.ts';

/** Converts an event to what is stored: plain JSON, errors as data, details bounded. */
export function entryFor(event: object): Json {
  return JSON.parse(JSON.stringify(event, keep)) as Json;
}

function keep(key: string, value: unknown): unknown {
  if (value instanceof Error) return toErrorData(value);
  if (key !== 'details' || value === undefined) return value;
  const bytes = Buffer.byteLength(JSON.stringify(value));
  return bytes > MAX_DETAILS_BYTES ? { cut: true, bytes } : value;
}

/** An error as data. */
export function toErrorData(error: unknown): { message: string; code?: string } {
  const message = error instanceof Error ? error.message : String(error);
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === 'string' ? { message, code } : { message };
}

/** The parts of an entry that decide which earlier entries it replaces. */
interface Entry {
  readonly type: string;
  readonly text?: string;
  readonly callId?: string;
  readonly result?: { readonly callId?: string };
  readonly message?: { readonly content?: unknown };
  /** The event of a run inside a call. */
  readonly event?: Entry;
}

/** An entry without the calls that it is nested in, and those calls. */
export interface UnwrappedEntry {
  readonly path: string;
  readonly event: Entry;
}

export function unwrapEntry(entry: Json): UnwrappedEntry {
  let [event, path] = [entry as unknown as Entry, ''];
  while (event.type === 'call-event' && event.event !== undefined) {
    path += `/${event.callId ?? ''}`;
    event = event.event;
  }
  return { path, event };
}

const WORDS: ReadonlySet<string> = new Set(['text', 'thinking']);

export function isWords({ event }: UnwrappedEntry): boolean {
  return WORDS.has(event.type);
}

/** An event, and how much its claim had said with it. */
export type SaidEvent = Pick<JournalEntry, 'event' | 'said'>;

/** How much an event says: words count by their UTF-16 units, any other event is 1. */
export function countSaid(entry: Json): number {
  const unwrapped = unwrapEntry(entry);
  return isWords(unwrapped) ? (unwrapped.event.text ?? '').length : 1;
}

/** Returns words without their first units. */
export function skipSaid(entry: Json, units: number): Json {
  return withoutStart(entry as unknown as Entry, units) as unknown as Json;
}

function withoutStart(entry: Entry, units: number): Entry {
  if (entry.type === 'call-event') return { ...entry, event: withoutStart(entry.event!, units) };
  return { ...entry, text: (entry.text ?? '').slice(units) };
}

/** Whether a part of an entry is missing. */
export function isCut(entry: Json): boolean {
  return typeof (entry as { readonly cut?: Json }).cut === 'number';
}

/**
 * Adds an entry to the entries that wait to be written. Adjacent text is merged, a call's newer state replaces the
 * older, and the end of a turn or call replaces its drafts, because it contains them.
 */
export function withEntry(waiting: readonly SaidEvent[], { event, said }: SaidEvent): SaidEvent[] {
  const added = unwrapEntry(event);
  const last = waiting.at(-1);
  if (isWords(added) && last !== undefined) {
    const before = unwrapEntry(last.event);
    if (before.path === added.path && before.event.type === added.event.type) {
      const both = joined(last.event as unknown as Entry, event as unknown as Entry) as unknown as Json;
      return [...waiting.slice(0, -1), { event: both, said }];
    }
  }
  const isDraft = matchDrafts(added);
  return [...waiting.filter((one) => !isDraft(unwrapEntry(one.event))), { event, said }];
}

function joined(last: Entry, added: Entry): Entry {
  if (added.type === 'call-event') return { ...added, event: joined(last.event!, added.event!) };
  return { ...added, text: `${last.text ?? ''}${added.text ?? ''}` };
}

/** Returns which earlier entries an entry replaces. */
export function matchDrafts({ path, event }: UnwrappedEntry): (one: UnwrappedEntry) => boolean {
  const isForCall = (type: string, callId?: string) => (one: UnwrappedEntry) =>
    one.path === path && one.event.type === type && one.event.callId === callId;
  switch (event.type) {
    case 'turn-end':
      return (one) => one.path === path && isWords(one);
    case 'call-update':
      return isForCall('call-update', event.callId);
    case 'call-end':
      return isForCall('call-update', event.result?.callId);
    case 'history':
    case 'journal-truncated':
      return isForCall(event.type);
    case 'turn-postponed':
      return isForCall('turn-retry');
    default:
      return () => false;
  }
}
