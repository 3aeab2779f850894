import type { Json } from '@whoa/core';
import { isWords, matchDrafts, type SaidEvent, type UnwrappedEntry, unwrapEntry } from './entry.ts';
import { measureBytes, truncateEntry } from './truncate.ts';

/** Above this share of the budget, drafts are no longer written (the end contains them), and long texts are cut. */
const TIGHT = 1 / 2;
/** Above this share the run is stopped. The rest is for its final entries. */
const FULL = 15 / 16;
/** The maximum share of one entry: with ample budget, when it is tight, and at the end. */
const SHARES = { ample: 1 / 16, tight: 1 / 256, full: 1 / 4_096 };
/** A compacted history may be larger than one message, by this factor. */
const HISTORY_TIMES = 4;
const MIN_ENTRY_BYTES = 512;
/** Reserved for the entry that says what was left out. */
const MARKER_BYTES = 128;

/** An entry in the store that a later one may replace. */
interface Draft extends UnwrappedEntry {
  readonly position: number;
  readonly bytes: number;
}

/** The size of a journal and its limit. */
export interface JournalBudget {
  readonly position: number;
  readonly bytes: number;
  readonly maxBytes: number;
  readonly drafts: readonly Draft[];
  /** What was not written because the budget ran out. */
  readonly left: { readonly entries: number; readonly bytes: number };
}

export interface FittedEntries {
  readonly events: readonly SaidEvent[];
  readonly replaces: readonly number[];
  /** The budget after these entries are written. */
  readonly budget: JournalBudget;
  /** The run should stop. */
  readonly isFull: boolean;
  /** Something was left out that no later entry will contain. */
  readonly isLossy: boolean;
}

export function createJournalBudget({
  position,
  bytes,
  maxBytes,
}: Pick<JournalBudget, 'position' | 'bytes' | 'maxBytes'>): JournalBudget {
  return { position, bytes, maxBytes, drafts: [], left: { entries: 0, bytes: 0 } };
}

/**
 * Makes entries fit the budget. Drafts in the store are removed when an entry contains their text. When the budget gets
 * tight, no more drafts are written and long entries are cut. A single `journal-truncated` entry counts what was left out.
 */
export function fitEntries(entries: readonly SaidEvent[], before: JournalBudget): FittedEntries {
  const fitting = new Fitting(before);
  for (const entry of entries) fitting.add(entry);
  return fitting.end();
}

class Fitting {
  readonly #before: JournalBudget;
  readonly #events: SaidEvent[] = [];
  #said = 0;
  readonly #replaces: number[] = [];
  #drafts: Draft[];
  #bytes: number;
  #left: JournalBudget['left'];
  #isLossy = false;

  constructor(before: JournalBudget) {
    this.#before = before;
    this.#bytes = before.bytes;
    this.#drafts = [...before.drafts];
    this.#left = before.left;
  }

  add({ event: entry, said }: SaidEvent): void {
    this.#said = said;
    const unwrapped = unwrapEntry(entry);
    const size = measureBytes(entry);
    const replaced = this.#replacedBy(unwrapped);
    const limit = this.#limit(unwrapped, size - measureDrafts(replaced));
    if (limit === undefined) this.#leave(size);
    else if (size <= limit) this.#write(entry, { unwrapped, size, replaced });
    else {
      // A cut entry no longer contains the earlier drafts, so they stay.
      const cut = truncateEntry(entry, limit);
      this.#write(cut, { unwrapped, size: measureBytes(cut), replaced: [] });
    }
  }

  end(): FittedEntries {
    const { position, maxBytes, left } = this.#before;
    if (this.#left !== left) {
      const marker = { type: 'journal-truncated', ...this.#left };
      const unwrapped = unwrapEntry(marker);
      this.#write(marker, { unwrapped, size: measureBytes(marker), replaced: this.#replacedBy(unwrapped) });
    }
    const budget = {
      position: position + this.#events.length,
      bytes: this.#bytes,
      maxBytes,
      drafts: this.#drafts,
      left: this.#left,
    };
    const isFull = this.#isLossy || this.#bytes > maxBytes * FULL;
    return { events: this.#events, replaces: this.#replaces, budget, isFull, isLossy: this.#isLossy };
  }

  /** Returns the maximum size of an entry; `undefined` if it must not be written. */
  #limit(unwrapped: UnwrappedEntry, added: number): number | undefined {
    const { maxBytes } = this.#before;
    const times = unwrapped.event.type === 'history' ? HISTORY_TIMES : 1;
    if (this.#bytes + added <= maxBytes * TIGHT) return Math.max(MIN_ENTRY_BYTES, maxBytes * SHARES.ample * times);
    if (isWords(unwrapped) || SKIPPED.has(unwrapped.event.type)) return undefined;
    const share = this.#bytes > maxBytes * FULL ? SHARES.full : SHARES.tight;
    return Math.max(MIN_ENTRY_BYTES, maxBytes * share * times);
  }

  #write(
    entry: Json,
    { unwrapped, size, replaced }: { unwrapped: UnwrappedEntry; size: number; replaced: readonly Draft[] },
  ): void {
    const isMarker = unwrapped.event.type === 'journal-truncated';
    const bytes = this.#bytes + size - measureDrafts(replaced);
    if (bytes > this.#before.maxBytes - (isMarker ? 0 : MARKER_BYTES)) {
      this.#isLossy = true;
      this.#leave(size);
      return;
    }
    this.#bytes = bytes;
    this.#replaces.push(...replaced.map(({ position }) => position));
    this.#drafts = this.#drafts.filter((draft) => !replaced.includes(draft) && !isOver(draft, unwrapped));
    this.#events.push({ event: entry, said: this.#said });
    if (isWords(unwrapped) || REPLACED.has(unwrapped.event.type)) {
      this.#drafts.push({ ...unwrapped, position: this.#before.position + this.#events.length, bytes: size });
    }
  }

  #leave(bytes: number): void {
    this.#left = { entries: this.#left.entries + 1, bytes: this.#left.bytes + bytes };
  }

  #replacedBy(unwrapped: UnwrappedEntry): readonly Draft[] {
    const isNeedless = matchDrafts(unwrapped);
    const drafts = this.#drafts.filter(isNeedless);
    if (unwrapped.event.type !== 'turn-end') return drafts;
    // A planner may have streamed other text than it replies with. Then the drafts stay.
    return ['text', 'thinking'].flatMap((type) => {
      const words = drafts.filter(({ event }) => event.type === type);
      const shown = words.map(({ event }) => event.text ?? '').join('');
      return said(unwrapped, type).startsWith(shown) ? words : [];
    });
  }
}

/** In addition to text: events that a later entry replaces. */
const REPLACED: ReadonlySet<string> = new Set(['call-update', 'turn-retry', 'history', 'journal-truncated']);
/**
 * In addition to text: events that are left out when the budget gets tight, because the end of a turn or call contains them.
 */
const SKIPPED: ReadonlySet<string> = new Set(['call-update', 'call-planned']);

function measureDrafts(drafts: readonly Draft[]): number {
  return drafts.reduce((bytes, draft) => bytes + draft.bytes, 0);
}

/** Whether nothing can replace a draft any more: a new turn has started, and the text of the old one stays. */
function isOver(draft: Draft, { path, event }: UnwrappedEntry): boolean {
  return event.type === 'turn-start' && draft.path === path && isWords(draft);
}

function said({ event }: UnwrappedEntry, type: string): string {
  const content = event.message?.content;
  if (!Array.isArray(content)) return '';
  const parts = content as readonly { readonly type?: string; readonly text?: string }[];
  return parts.map((part) => (part.type === type ? (part.text ?? '') : '')).join('');
}
