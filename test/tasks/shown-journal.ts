import type { FollowEvent, JournalEntry } from '@whoa/tasks';
import { isHeldLater } from '../../packages/core/src/testing/draft.ts';

type Shown = Exclude<FollowEvent, { type: 'end' }>;
type Entry = Extract<Shown, { type: 'entry' }>;

interface Words {
  readonly type: string;
  readonly text?: string;
  readonly event?: Words;
}

const innermost = (event: unknown): Words => {
  const { event: inner } = event as Words;
  return inner === undefined ? (event as Words) : innermost(inner);
};
const isWords = (event: unknown): boolean => ['text', 'thinking'].includes(innermost(event).type);
const toText = (event: unknown): string => innermost(event).text ?? '';
const toStart = ({ event, said }: Pick<Entry, 'said'> & { event: unknown }): number =>
  said - (isWords(event) ? toText(event).length : 1);
const isCut = (event: unknown): boolean => 'cut' in (event as object);

/** What a reader shows: everything it has seen, without what was taken back. */
export class ShownJournal {
  #entries: Entry[] = [];
  /** The claims of which something was taken back. */
  readonly #takenBack: string[] = [];

  get entries(): readonly Entry[] {
    return this.#entries;
  }

  add(seen: Shown): void {
    if (seen.type === 'entry') {
      this.#entries.push(seen);
      return;
    }
    const { position, claimHash, said } = seen;
    this.#takenBack.push(claimHash);
    this.#entries = this.#entries.flatMap((entry) => {
      if (position === 0) return [];
      if (!entry.isDraft || entry.claimHash !== claimHash || entry.said <= said) return [entry];
      const kept = said - toStart(entry);
      if (kept <= 0 || entry.event.type !== 'text') return [];
      return [{ ...entry, said, event: { ...entry.event, text: entry.event.text.slice(0, kept) } }];
    });
  }

  /** Returns what is wrong beside the journal of the ended task. */
  findProblems(journal: readonly JournalEntry[]): string[] {
    const claims = [...new Set([...this.#entries, ...journal].map(({ claimHash }) => claimHash))];
    const there = new Map(journal.map((entry) => [entry.position, entry]));
    const gone = this.#entries.filter(({ isDraft, ...entry }) => {
      return !isDraft && !there.has(entry.position) && !isHeldLater(entry as unknown as JournalEntry, journal);
    });
    // A starved machine may lose several claims; what each said is taken back once.
    const again = this.#takenBack.filter((claim, i) => this.#takenBack.indexOf(claim) !== i);
    return [
      ...again.map((claim) => `it was told more than once that the words of ${claim} are lost`),
      ...gone.map(({ position }) => `it was given ${position}, which is not there any more`),
      ...claims.flatMap((claim) => {
        const of = <T extends { claimHash: string }>(all: readonly T[]): T[] =>
          all.filter(({ claimHash }) => claimHash === claim);
        return findProblems(of(this.#entries), of(journal));
      }),
    ];
  }
}

function findProblems(shown: readonly Entry[], journal: readonly JournalEntry[]): string[] {
  const problems: string[] = [];
  const units: string[] = [];
  let last = 0;
  for (const { event, said, cursor } of shown) {
    const start = toStart({ event, said });
    if (start < last && !isCut(event)) problems.push(`it was given ${start} after ${last} at ${cursor}`);
    if (isWords(event)) for (const [i, unit] of toText(event).split('').entries()) units[start + i] = unit;
    last = said;
  }
  const end = journal.at(-1)?.said ?? 0;
  if (last > end) problems.push(`it was given ${last}, and the journal ends at ${end}`);
  if (last < end) problems.push(`it was given ${last}, and the journal has ${end}`);
  for (const entry of journal) {
    const { event, said } = entry;
    const start = toStart(entry);
    if (!isWords(event)) {
      const isShown = shown.some((one) => one.said === said && JSON.stringify(one.event) === JSON.stringify(event));
      if (!isShown) problems.push(`it was never given ${JSON.stringify(event)} (${said})`);
    } else if (!isCut(event)) {
      const text = units.slice(start, said).join('');
      if (text !== toText(event)) problems.push(`it was given '${text}', and the journal has '${toText(event)}'`);
    }
  }
  return problems;
}
