import type { Frame } from '../bus/hint.ts';
import { isFinalStatus } from '../ledger/rules/status.ts';
import { countSaid, isCut, isWords, skipSaid, unwrapEntry } from '../run/journal/entry.ts';
import type { JournalEntry, TaskRecord } from '../task.ts';

/** What a reader sees, and where it is then. */
export type Seen = { readonly place: Place } /** `isDraft`: the journal does not have it yet. */ & (
  | (JournalEntry & { readonly type: 'entry'; readonly isDraft?: true })
  /** What was seen as a draft of this claim, behind `said`, is lost. What the journal has up to this position holds. */
  | { readonly type: 'taken-back'; readonly position: number; readonly claimHash: string; readonly said: number }
);

/** Where a reader is: what it has seen, also of drafts. */
export interface Place {
  readonly position: number;
  /** The claim of the entry at this position. */
  readonly last: string;
  readonly epoch: number;
  readonly claimHash: string;
  /** What it has seen of this claim. */
  readonly said: number;
}

type Record = Pick<TaskRecord, 'position' | 'epoch' | 'claimHash' | 'status'>;

const NOWHERE: Place = { position: 0, last: '', epoch: 0, claimHash: '', said: 0 };

/**
 * Shows the journal of a task, and frames of what is not written yet, as one text: each event once, in order. It reads
 * nothing itself. Its user reads the record first, then the entries, and passes frames only while it reads nothing.
 */
export class LiveText {
  #place: Place;
  /** What the journal has of the claim. */
  #kept = 0;

  constructor(place: Partial<Place> = {}) {
    this.#place = { ...NOWHERE, ...place };
  }

  get place(): Place {
    return this.#place;
  }

  /** Read entries after this position. The last one that was seen comes again: the store may have been restored. */
  get readAfter(): number {
    return Math.max(0, this.#place.position - 1);
  }

  /** Whether the store was restored to an earlier state. Then call `restart`, and read everything again. */
  isRestored({ position, epoch, claimHash }: Record): boolean {
    const { place } = this;
    const isOther = place.epoch === epoch && place.claimHash !== '' && claimHash !== place.claimHash;
    return position < place.position || epoch < place.epoch || isOther;
  }

  restart(): Seen[] {
    const { position, said, claimHash } = this.#place;
    this.#place = NOWHERE;
    this.#kept = 0;
    return position > 0 || said > 0 ? [{ type: 'taken-back', position: 0, claimHash, said: 0, place: NOWHERE }] : [];
  }

  /** Takes a page of the journal. `undefined`: the store was restored. */
  takeEntries(entries: readonly JournalEntry[]): Seen[] | undefined {
    const seen: Seen[] = [];
    for (const entry of entries) {
      const { position, last } = this.#place;
      if (entry.position === position) {
        if (last !== '' && last !== entry.claimHash) return undefined;
        this.#recognise(entry);
      }
      if (entry.position <= position) continue;
      if (this.#isNewClaim(entry)) seen.push(...this.#begin(entry));
      this.#place = { ...this.#place, position: entry.position, last: entry.claimHash };
      seen.push(...this.#show(entry));
      this.#kept = Math.max(this.#kept, entry.said);
    }
    return seen;
  }

  /** Takes the record that was read before the entries. */
  takeRecord({ epoch, claimHash = '', status }: Record): Seen[] {
    const seen: Seen[] = [];
    if (epoch > this.#place.epoch) seen.push(...this.#begin({ epoch, claimHash }));
    return isFinalStatus(status) ? [...seen, ...this.#takeBack()] : seen;
  }

  /** Returns what a frame adds; `read`: read the record and the journal first; `ahead`: what is before it is missing. */
  takeFrame(frame: Frame): readonly Seen[] | 'read' | 'ahead' {
    const { epoch, claimHash, said, position } = this.#place;
    if (frame.epoch < epoch) return [];
    if (frame.epoch > epoch) return 'read';
    if (frame.claimHash !== claimHash) return [];
    if (frame.kept > said) return 'read';
    // The frame of the next append brings the read: otherwise one lost frame makes every reader read.
    if (frame.from > said) return 'ahead';
    if (frame.position > position) {
      this.#kept = Math.max(this.#kept, frame.kept);
      this.#place = { ...this.#place, position: frame.position, last: claimHash };
    }
    const { at, events } = frame;
    const seen = events.flatMap((one) =>
      this.#show({ ...one, epoch, claimHash, at, position: this.#place.position }, { isDraft: true }),
    );
    this.#place = { ...this.#place, said: Math.max(this.#place.said, frame.to) };
    return seen;
  }

  /** Learns from the last entry it has seen where it is. */
  #recognise({ epoch, claimHash, said }: JournalEntry): void {
    if (this.#place.last === '') this.#place = { ...this.#place, last: claimHash };
    if (this.#place.epoch === 0) this.#place = { ...this.#place, epoch, claimHash, said };
    if (!this.#isNewClaim({ epoch, claimHash })) this.#kept = Math.max(this.#kept, said);
  }

  #isNewClaim({ epoch, claimHash }: Pick<JournalEntry, 'epoch' | 'claimHash'>): boolean {
    return epoch !== this.#place.epoch || claimHash !== this.#place.claimHash;
  }

  #begin({ epoch, claimHash }: Pick<JournalEntry, 'epoch' | 'claimHash'>): Seen[] {
    const seen = this.#takeBack();
    this.#place = { ...this.#place, epoch, claimHash, said: 0 };
    this.#kept = 0;
    return seen;
  }

  #takeBack(): Seen[] {
    const { said, position, claimHash } = this.#place;
    if (said <= this.#kept) return [];
    this.#place = { ...this.#place, said: this.#kept };
    return [{ type: 'taken-back', position, claimHash, said: this.#kept, place: this.#place }];
  }

  /** Returns what is new of an entry. */
  #show(entry: JournalEntry, draft: { readonly isDraft?: true } = {}): Seen[] {
    const { said } = this.#place;
    if (entry.said <= said) return [];
    this.#place = { ...this.#place, said: entry.said };
    const start = entry.said - countSaid(entry.event);
    // Nobody knows where the rest of a cut text begins. The end of the turn has it.
    const isWhole = isCut(entry.event) ? said <= this.#kept : start >= said;
    const shown = { ...entry, ...draft, type: 'entry', place: this.#place } as const;
    if (isWhole || !isWords(unwrapEntry(entry.event))) return [shown];
    return isCut(entry.event) ? [] : [{ ...shown, event: skipSaid(entry.event, said - start) }];
  }
}

/** Formats a place as the id of an event. */
export function formatPlace({ position, last, epoch, claimHash, said }: Place): string {
  return [position, last, epoch, claimHash, said].join('.');
}

const PLACE = /^(\d{1,16})(?:\.([0-9a-f]*)\.(\d{1,15})\.([0-9a-f]*)\.(\d{1,15}))?$/;

/** Parses the id of an event, or a position. `undefined`: it is neither. */
export function parsePlace(text: string): Partial<Place> | undefined {
  const [, position, last, epoch, claimHash, said] = PLACE.exec(text) ?? [];
  if (position === undefined) return undefined;
  if (last === undefined) return { position: Number(position) };
  return { position: Number(position), last, epoch: Number(epoch), claimHash: claimHash!, said: Number(said) };
}
