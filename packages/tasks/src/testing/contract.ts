import type { StoreOptions, TaskStore } from '../store.ts';
import { type CaseContext, type ContractCase, withOwned } from './case.ts';
import { cancelCases } from './contract/cancel.ts';
import { conversationCases } from './contract/conversation.ts';
import { createCases } from './contract/create.ts';
import { formatCases } from './contract/format.ts';
import { historyCases } from './contract/history.ts';
import { holdCases } from './contract/hold.ts';
import { journalCases } from './contract/journal.ts';
import { journalBoundCases } from './contract/journal-bound.ts';
import { leaseCases } from './contract/lease.ts';
import { nonceCases } from './contract/nonces.ts';
import { overviewCases } from './contract/overview.ts';
import { repeatCases } from './contract/repeat.ts';
import { ringCases } from './contract/ring.ts';
import { limitCases } from './contract/running-limits.ts';
import { sessionCases } from './contract/session.ts';
import { sizeCases } from './contract/sizes.ts';
import { statusCases } from './contract/status.ts';
import { takeCases } from './contract/take.ts';
import { visibilityCases } from './contract/visibility.ts';
import { watchCases } from './contract/watch.ts';

/** How the contract reaches a kind of store. One is made for every case. */
export interface StoreHarness extends AsyncDisposable {
  /** A store on data of its own. */
  open(options: StoreOptions): Promise<TaskStore>;
  /** Another client on the same data; leave it out if there can be none, and say why in `skips`. */
  openSecond?(): Promise<TaskStore>;
  advance(ms: number): Promise<void>;
  /** Marks the data as a version with this format would; leave it out if there can be none, and say why in `skips`. */
  setFormat?(format: number): Promise<void>;
}

/** A kind of store under the contract. */
export interface StoreKind {
  readonly name: string;
  createHarness(): Promise<StoreHarness>;
  /** Why cases with a need are left out. */
  readonly skips?: Partial<Record<NonNullable<ContractCase['needs']>, string>>;
}

/** Everything every store must do. */
export const storeContract: readonly ContractCase[] = [
  ...statusCases,
  ...createCases,
  ...leaseCases,
  ...takeCases,
  ...limitCases,
  ...sessionCases,
  ...ringCases,
  ...journalCases,
  ...journalBoundCases,
  ...nonceCases,
  ...repeatCases,
  ...cancelCases,
  ...conversationCases,
  ...historyCases,
  ...holdCases,
  ...visibilityCases,
  ...watchCases,
  ...overviewCases,
  ...sizeCases,
  ...formatCases,
];

/**
 * Runs one case against one kind of store.
 *
 * @returns A promise that resolves when the store kept the contract.
 * @throws Error when it did not.
 */
export async function runContractCase(kind: StoreKind, one: ContractCase): Promise<void> {
  await withOwned(await kind.createHarness(), async (harness) => {
    await withOwned(await harness.open(one.options ?? {}), async (store) => {
      const context: CaseContext = {
        store,
        advance: (ms) => harness.advance(ms),
        openSecond: () => harness.openSecond?.() ?? Promise.reject(new Error(`${kind.name} has no second client`)),
        setFormat: (format) => harness.setFormat?.(format) ?? Promise.reject(new Error(`${kind.name} has no format`)),
      };
      await one.run(context);
    });
  });
}

export interface ContractReport {
  readonly store: string;
  readonly cases: number;
  readonly passed: number;
  readonly skipped: readonly { readonly title: string; readonly reason: string }[];
  readonly failed: readonly { readonly title: string; readonly error: unknown }[];
}

/**
 * Runs the whole contract, without any test framework.
 *
 * @returns What passed, was skipped and failed.
 */
export async function runStoreContract(kind: StoreKind): Promise<ContractReport> {
  const skipped: { title: string; reason: string }[] = [];
  const failed: { title: string; error: unknown }[] = [];
  for (const one of storeContract) {
    const reason = findSkipReason(kind, one);
    if (reason !== undefined) {
      skipped.push({ title: one.title, reason });
      continue;
    }
    try {
      await runContractCase(kind, one);
    } catch (error) {
      failed.push({ title: one.title, error });
    }
  }
  const passed = storeContract.length - skipped.length - failed.length;
  return { store: kind.name, cases: storeContract.length, passed, skipped, failed };
}

/**
 * Finds out why a case does not apply to a kind of store.
 *
 * @returns The reason, or `undefined` if it applies.
 */
export function findSkipReason(kind: StoreKind, one: ContractCase): string | undefined {
  return one.needs === undefined ? undefined : kind.skips?.[one.needs];
}

/**
 * Formats reports as a table for people.
 *
 * @returns The table.
 */
export function formatContractReports(reports: readonly ContractReport[]): string {
  const lines = ['store      cases  passed  skipped  failed'];
  for (const { store, cases, passed, skipped, failed } of reports) {
    const figures = [cases, passed, skipped.length, failed.length].map((n, i) => `${n}`.padStart([5, 6, 7, 6][i]!));
    lines.push(`${store.padEnd(10)} ${figures.join('  ')}`);
    for (const reason of new Set(skipped.map((skip) => skip.reason))) lines.push(`           skipped: ${reason}`);
    for (const { title } of failed) lines.push(`           FAILED: ${title}`);
  }
  return lines.join('\n');
}
