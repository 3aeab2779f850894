import type { StoreOptions } from '../ledger/store-options.ts';
import type { TaskStore } from '../store.ts';
import { type CaseContext, type ContractCase, usingResource } from './case.ts';
import { conversationCancelCases } from './contract/conversation/cancel.ts';
import { contextCases } from './contract/conversation/context.ts';
import { conversationCases } from './contract/conversation/conversation.ts';
import { historyCases } from './contract/conversation/history.ts';
import { holdCases } from './contract/conversation/hold.ts';
import { mergeCases } from './contract/conversation/merge.ts';
import { cancelCases } from './contract/delivery/cancel.ts';
import { claimManyCases } from './contract/delivery/claim-many.ts';
import { delayedReleaseCases } from './contract/delivery/delayed-release.ts';
import { engineCases } from './contract/delivery/engine.ts';
import { journalCases } from './contract/delivery/journal.ts';
import { journalBoundCases } from './contract/delivery/journal-bound.ts';
import { lateReleaseCases } from './contract/delivery/late-release.ts';
import { leaseCases } from './contract/delivery/lease.ts';
import { offerLimitCases } from './contract/delivery/offer-limits.ts';
import { limitCases } from './contract/delivery/running-limits.ts';
import { sessionCases } from './contract/delivery/session.ts';
import { suspectQueueCases } from './contract/delivery/suspect-queues.ts';
import { suspectCases } from './contract/delivery/suspects.ts';
import { takeCases } from './contract/delivery/take.ts';
import { wakeupCases } from './contract/delivery/wakeup.ts';
import { watchCases } from './contract/delivery/watch.ts';
import { answerCases } from './contract/questions/answer.ts';
import { askCases } from './contract/questions/ask.ts';
import { closeCases } from './contract/questions/close.ts';
import { eraseCases } from './contract/questions/erase.ts';
import { expiryCases } from './contract/questions/expire.ts';
import { keepCases } from './contract/questions/keep.ts';
import { parkCases } from './contract/questions/park.ts';
import { createCases } from './contract/record/create.ts';
import { feedCases } from './contract/record/feed.ts';
import { feedReaderCases } from './contract/record/feed-readers.ts';
import { fleetCases } from './contract/record/fleet.ts';
import { formatCases } from './contract/record/format.ts';
import { headCases } from './contract/record/head.ts';
import { nonceCases } from './contract/record/nonces.ts';
import { operateCases } from './contract/record/operate.ts';
import { overviewCases } from './contract/record/overview.ts';
import { pauseAllCases } from './contract/record/pause-all.ts';
import { repeatCases } from './contract/record/repeat.ts';
import { retentionCases } from './contract/record/retention.ts';
import { sizeCases } from './contract/record/sizes.ts';
import { statusCases } from './contract/record/status.ts';
import { visibilityCases } from './contract/record/visibility.ts';

/** Gives the contract access to a kind of store. One is created for every case. */
export interface StoreHarness extends AsyncDisposable {
  /** Opens a store with its own data. */
  open(options: StoreOptions): Promise<TaskStore>;
  /** Opens another client on the same data. If that is impossible, leave it out and say why in `skips`. */
  openSecond?(options?: StoreOptions): Promise<TaskStore>;
  advance(ms: number): Promise<void>;
  /** Marks the data as a version with this format would. If that is impossible, leave it out and say why in `skips`. */
  setFormat?(format: number): Promise<void>;
}

/** A kind of store under the contract. */
export interface StoreKind {
  readonly name: string;
  /** Creates what one case needs: stores on fresh data, and a clock to move. */
  createHarness(): Promise<StoreHarness>;
  /** Why cases with a requirement are skipped. */
  readonly skips?: Partial<Record<NonNullable<ContractCase['needs']>, string>>;
}

/** What every store must do. */
export const storeContract: readonly ContractCase[] = [
  ...statusCases,
  ...createCases,
  ...headCases,
  ...leaseCases,
  ...lateReleaseCases,
  ...delayedReleaseCases,
  ...suspectCases,
  ...suspectQueueCases,
  ...takeCases,
  ...claimManyCases,
  ...limitCases,
  ...engineCases,
  ...offerLimitCases,
  ...sessionCases,
  ...wakeupCases,
  ...journalCases,
  ...askCases,
  ...answerCases,
  ...parkCases,
  ...expiryCases,
  ...closeCases,
  ...keepCases,
  ...eraseCases,
  ...journalBoundCases,
  ...nonceCases,
  ...repeatCases,
  ...cancelCases,
  ...conversationCases,
  ...conversationCancelCases,
  ...historyCases,
  ...holdCases,
  ...contextCases,
  ...mergeCases,
  ...visibilityCases,
  ...retentionCases,
  ...watchCases,
  ...overviewCases,
  ...operateCases,
  ...pauseAllCases,
  ...fleetCases,
  ...feedCases,
  ...feedReaderCases,
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
  await usingResource(await kind.createHarness(), async (harness) => {
    await usingResource(await harness.open(one.options ?? {}), async (store) => {
      const context: CaseContext = {
        store,
        advance: (ms) => harness.advance(ms),
        openSecond: (options) =>
          harness.openSecond?.(options) ?? Promise.reject(new Error(`${kind.name} has no second client`)),
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
