import type { CancelReason } from './reason.ts';

/** How abandoned work ended after all. */
export type LateEnd = { readonly at: number } & (
  | { readonly state: 'finished'; readonly value: unknown }
  | { readonly state: 'failed'; readonly error: unknown }
);

/** Work that was still running when the wait for it was over. */
export interface AbandonedWork {
  /** Names the work uniquely, for a call `run/call`. */
  readonly key: string;
  readonly name: string;
  readonly reason: CancelReason;
  readonly abandonedAt: number;
  /** Set when it returned late. The record of its run did not change. */
  readonly late?: LateEnd;
}

/** Keeps book of abandoned work, apart from the record of the run that abandoned it. */
export interface Ledger {
  abandon(work: AbandonedWork): void;
  returned(key: string, late: LateEnd): void;
  entries(): readonly AbandonedWork[];
}

/** Writes abandoned work down now and its late end when it comes; `onReturn` hears of it too. */
export function enterInLedger(
  ledger: Ledger,
  work: AbandonedWork,
  { late, onReturn }: { late: Promise<LateEnd>; onReturn?: (end: LateEnd) => void },
): void {
  ledger.abandon(work);
  const written = late.then((end) => {
    ledger.returned(work.key, end);
    onReturn?.(end);
  });
  written.catch((error: unknown) => process.emitWarning(new Error('A ledger failed', { cause: error })));
}

/** A ledger in memory. The oldest entries that have returned make room first, then the oldest. */
export function createLedger(options: { entriesMax?: number } = {}): Ledger {
  const { entriesMax = 1_000 } = options;
  const entries = new Map<string, AbandonedWork>();

  function makeRoom(): void {
    if (entries.size <= entriesMax) return;
    const returned = [...entries.values()].find((entry) => entry.late !== undefined);
    const oldest = returned?.key ?? entries.keys().next().value;
    if (oldest !== undefined) entries.delete(oldest);
  }

  return {
    abandon(work) {
      entries.set(work.key, work);
      makeRoom();
    },
    returned(key, late) {
      const work = entries.get(key);
      if (work !== undefined) entries.set(key, { ...work, late });
    },
    entries: () => [...entries.values()],
  };
}
