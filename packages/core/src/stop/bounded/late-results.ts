import { count, having, type Rule, readSettings } from '../settings.ts';
import type { CancelReason } from '../token/reason.ts';
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
export interface LateResults {
  /** Records work that was abandoned. */
  abandon(work: AbandonedWork): void;
  /** Records how abandoned work ended after all. */
  returned(key: string, late: LateResult): void;
  /** Returns all abandoned work, with its late ends. */
  entries(): readonly AbandonedWork[];
}

/** The rule for a setting that takes late results. */
export const lateResultsRule: Rule = /*#__PURE__*/ having('late results', 'abandon', 'returned', 'entries');

/** Records abandoned work now and its late end when it comes. If recording fails, nothing else is affected. */
export function recordAbandoned(
  lateResults: LateResults,
  work: AbandonedWork,
  { late, onReturn }: { late: Promise<LateResult>; onReturn?: (end: LateResult) => void },
): void {
  attempt(() => lateResults.abandon(work));
  late.then((end) => {
    attempt(() => onReturn?.(end));
    attempt(() => lateResults.returned(work.key, end));
  }, warnOfFailure);
}

function attempt(write: () => unknown): void {
  // An application's own may return promises, although the interface does not ask for them.
  new Promise((resolve) => resolve(write())).catch(warnOfFailure);
}

function warnOfFailure(error: unknown): void {
  warn(new Error('Late results failed', { cause: error }));
}

/**
 * Creates a record of abandoned work in memory. When it is full, the oldest entries that have returned are dropped
 * first, then the oldest.
 *
 * @returns The late results to pass to `guard`, `createRuntime` or `createAgent`.
 * @throws {@link SettingsError} when `maxEntries` is not a positive whole number.
 */
export function createLateResults(options: { maxEntries?: number | undefined } = {}): LateResults {
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
