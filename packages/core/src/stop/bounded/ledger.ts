import { count, having, type Rule, readSettings } from '../settings.ts';
import type { CancelReason } from '../token/reason.ts';
import { isPromiseLike } from '../wait.ts';
import { warn } from '../warn.ts';

/** How abandoned work ended after all. */
export type LateResult = { readonly at: number } & (
  | { readonly state: 'finished'; readonly value: unknown }
  | { readonly state: 'failed'; readonly error: unknown }
);

/** Work that was still running when the wait for it was over. */
export interface AbandonedWork {
  /** Unique key of the work; for a call, `run/call`. */
  readonly key: string;
  readonly name: string;
  readonly reason: CancelReason;
  readonly abandonedAt: number;
  /** Set when it returned late. The record of its run did not change. */
  readonly late?: LateResult;
}

/** Records abandoned work, separately from the record of the run that abandoned it. */
export interface Ledger {
  /** Records work that was abandoned. */
  abandon(work: AbandonedWork): void;
  /** Records how abandoned work ended after all. */
  returned(key: string, late: LateResult): void;
  /** Returns all abandoned work, with its late ends. */
  entries(): readonly AbandonedWork[];
}

/** The rule for a setting that is a ledger. */
export const ledgerRule: Rule = /*#__PURE__*/ having('a ledger', 'abandon', 'returned', 'entries');

/** Records abandoned work now and its late end when it comes. A ledger that fails affects nothing else. */
export function enterInLedger(
  ledger: Ledger,
  work: AbandonedWork,
  { late, onReturn }: { late: Promise<LateResult>; onReturn?: (end: LateResult) => void },
): void {
  attempt(() => ledger.abandon(work));
  late.then((end) => {
    attempt(() => onReturn?.(end));
    attempt(() => ledger.returned(work.key, end));
  }, warnOfLedger);
}

function attempt(write: () => unknown): void {
  try {
    const answer = write();
    // A ledger may return promises, although the interface does not ask for them.
    if (isPromiseLike(answer)) answer.then(undefined, warnOfLedger);
  } catch (error) {
    warnOfLedger(error);
  }
}

function warnOfLedger(error: unknown): void {
  warn(new Error('A ledger failed', { cause: error }));
}

/**
 * Creates a ledger of abandoned work in memory. When it is full, the oldest entries that have returned are dropped
 * first, then the oldest.
 *
 * @returns The ledger to pass to `guard`, `createRuntime` or `createAgent`.
 * @throws {@link SettingsError} when `maxEntries` is not a positive whole number.
 */
export function createLedger(options: { maxEntries?: number | undefined } = {}): Ledger {
  const { maxEntries = 1_000 } = readSettings<{ maxEntries?: number }>(options, { maxEntries: count() });
  const entries = new Map<string, AbandonedWork>();

  function dropOldest(): void {
    if (entries.size <= maxEntries) return;
    const returned = [...entries.values()].find((entry) => entry.late !== undefined);
    entries.delete(returned?.key ?? entries.keys().next().value!);
  }

  return {
    abandon(work) {
      entries.set(work.key, work);
      dropOldest();
    },
    returned(key, late) {
      const work = entries.get(key);
      if (work !== undefined) entries.set(key, { ...work, late });
    },
    entries: () => [...entries.values()],
  };
}
