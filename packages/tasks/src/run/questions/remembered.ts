import type { JournalEntry } from '../../task.ts';
import type { Journal } from '../journal/journal.ts';
import type { JournalEvent } from '../journal/journal-event.ts';
import { toHash } from './answers.ts';

/** The `always` and `never` answers of a task. What they cover is kept as a hash. */
export class RememberedAnswers {
  /** Called with what an answer covers. */
  onSet: (key: string) => void = () => {};
  readonly #journal: Journal;
  readonly #answers = new Map<string, boolean>();
  readonly #givenBy = new Map<string, string | undefined>();

  constructor(journal: Journal) {
    this.#journal = journal;
  }

  get(key: string): boolean | undefined {
    return this.#answers.get(toHash(key));
  }

  set(key: string, isYes: boolean): void {
    this.#answers.set(toHash(key), isYes);
    // Written before the intent of the call it allows: a later worker must know it.
    this.#journal.add({ type: 'approval-remembered', key: toHash(key), approved: isYes, by: this.findGiver(key) });
    this.onSet(key);
  }

  /** Notes who gives an answer that is about to be remembered. */
  recordGiver(key: string, by: string | undefined): void {
    this.#givenBy.set(toHash(key), by);
  }

  findGiver(key: string): string | undefined {
    return this.#givenBy.get(toHash(key));
  }

  /** Reads what earlier workers were given. */
  restore(past: readonly JournalEntry[]): void {
    for (const { event } of past) {
      const { type, key, approved, by } = event as Partial<Extract<JournalEvent, { type: 'approval-remembered' }>>;
      if (type !== 'approval-remembered' || typeof key !== 'string') continue;
      this.#answers.set(key, approved === true);
      this.#givenBy.set(key, by);
    }
  }
}
