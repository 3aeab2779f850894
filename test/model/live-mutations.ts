import type { Change } from '../plant.ts';

interface Mutation {
  readonly change: Change;
  /** A test beside the sources that fails with it. */
  readonly test: string;
}

const TEXT = 'follow/live-text.ts';
const READING = 'follow/shared-reading.ts';
const JOURNAL = 'run/journal/journal.ts';

const inReader = (find: string, replace: string): Mutation => {
  return { change: { file: TEXT, find, replace }, test: 'follow/live-text.test.ts' };
};
const inReading = (find: string, replace: string): Mutation => {
  return { change: { file: READING, find, replace }, test: 'follow/shared-reading.test.ts' };
};
const inJournal = (find: string, replace: string): Mutation => {
  return { change: { file: JOURNAL, find, replace }, test: 'run/journal/journal.test.ts' };
};

/** The bugs of `live.pml` in the sources. `npm run long -- live` plants each and runs its test. A text: why it is not here. */
export const liveMutations: Readonly<Record<string, Mutation | string>> = {
  NO_EPOCH_CHECK: inReader(
    "if (frame.epoch < epoch) return [];\n    if (frame.epoch > epoch) return 'read';\n    if (frame.claimHash !== claimHash) return [];",
    '',
  ),
  KEPT_NOT_COMPARED: inReader("if (frame.kept > said) return 'read';", ''),
  GAP_APPLIED: inReader("if (frame.from > said) return 'ahead';", ''),
  EPOCH_AFTER_ENTRIES: inReading(
    'await this.#readEntries(record);\n    const',
    'await this.#readEntries(record);\n    Object.assign(record, await store.get(ref));\n    const',
  ),
  NO_TAKE_BACK: inReader('const seen = this.#takeBack();', 'const seen: Seen[] = [];'),
  END_KEEPS_DRAFT: inReader('isFinalStatus(status) ? [...seen, ...this.#takeBack()] : seen', 'seen'),
  UNFENCED: "the planted bug 'no fence' of the simulation",
  CONFIRM_ALL: inReader('this.#kept = Math.max(this.#kept, frame.kept);', 'this.#kept = frame.to;'),
  COVERED_IS_SHOWN_AGAIN: inReader('if (entry.said <= said) return [];', ''),
  ENDS_UNFLUSHED: "the planted bug 'a worker's last write is not flushed' of the simulation",
  NO_BASE: inReader(
    "if (frame.epoch > epoch) return 'read';\n    if (frame.claimHash !== claimHash) return [];",
    'if (frame.epoch > epoch) this.#begin(frame);',
  ),
  MARKER_TAKES_BACK: inReader(
    'seen.push(...this.#show(entry));',
    "if ((entry.event as { type?: string }).type === 'journal-truncated') seen.push(...this.#takeBack());\n      seen.push(...this.#show(entry));",
  ),
  INTEREST_AFTER_THE_RECORD: inReading(
    'await this.#ask(() => this.#watch());',
    'this.#ask(() => this.#watch()).catch(() => {});',
  ),
  NO_APPEND_WHEN_WATCHED: inJournal(
    'this.#setReaders([...this.#readers, reader]);\n    this.#flushLater();',
    'this.#setReaders([...this.#readers, reader]);',
  ),
  ANSWER_FORGETS_THE_HINT: inJournal('new Set([...readers, ...this.#newReaders])', 'new Set(readers)'),
  FORGETS_WHILE_READING: inReading(
    'if (this.#isLooking || this.#isDue) {\n      this.#wait(frame);',
    'if (this.#isLooking || this.#isDue) {',
  ),
  TWO_READS: 'one loop reads, so there is never a second read',
  READ_EACH_GAP: inReader("if (frame.from > said) return 'ahead';", "if (frame.from > said) return 'read';"),
  CLAIM_NOT_COMPARED: inReader('if (frame.claimHash !== claimHash) return [];', ''),
  FENCED_BY_EPOCH_ALONE: "the contract: 'a write counts only with epoch, session and claim together'",
};
