import type { StoreCancelReceipt, TaskRecord } from '@whoa/tasks';
import type { FinalStatus } from '../../packages/tasks/src/ledger/rules/status.ts';

export interface ChaosReport {
  readonly runs: number;
  readonly seconds: number;
  /** How long after the last fault the last run ended, and how many waited until the servers' clock had moved. */
  readonly healSeconds: number;
  readonly waitedLonger: number;
  readonly ends: Record<string, number>;
  /** The receipts of cancels, counted by result. */
  readonly receipts: Record<string, number>;
  /** Runs that were claimed more than once. */
  readonly takenAgain: number;
  /** Runs that failed because they lost as many workers as the rules allow. */
  readonly wornOut: number;
  readonly entries: number;
  readonly strikes: Record<string, number>;
  /** Faults that the store cannot have, and why. */
  readonly cannot: Readonly<Record<string, string>>;
  readonly violations: readonly string[];
}

/** A task, and everything that its receipts say about it. */
export interface ChaosRun {
  readonly task: TaskRecord;
  readonly fails: boolean;
  /** A newer message may replace it or be merged with it. */
  readonly isConversation: boolean;
  /** It was debounced, and may be rejected when it becomes due. */
  readonly mayBeRejected: boolean;
  /** How many cancels were sent. If the response to one was lost, a later receipt only says that it is too late. */
  asked: number;
  readonly receipts: StoreCancelReceipt[];
  /** Its record when we first saw that it had ended. */
  ended?: TaskRecord & { readonly status: FinalStatus };
}

export const TENANT = 'chaos';
