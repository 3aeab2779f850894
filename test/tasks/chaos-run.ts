import type { StoreCancelReceipt, TaskRecord } from '@whoa/tasks';
import type { FinalStatus } from '../../packages/tasks/src/status.ts';

export interface ChaosReport {
  readonly lives: number;
  readonly seconds: number;
  readonly ends: Record<string, number>;
  /** How cancels were answered. */
  readonly receipts: Record<string, number>;
  /** Lives that more than one claim was given out for. */
  readonly takenAgain: number;
  /** Lives that failed because their workers were lost as often as the rules allow. */
  readonly wornOut: number;
  readonly entries: number;
  readonly strikes: Record<string, number>;
  /** Faults that the store cannot have, and why. */
  readonly cannot: Readonly<Record<string, string>>;
  readonly violations: readonly string[];
}

/** What is known of one task from its answers. */
export interface Life {
  readonly task: TaskRecord;
  readonly fails: boolean;
  /** A newer message may take its place, or be told instead of it. */
  readonly isConversation: boolean;
  /** It was held back, and may be refused when its time comes. */
  readonly mayBeRejected: boolean;
  /** How many cancels were sent. Of one whose answer was lost, a later receipt only says that it is too late. */
  asked: number;
  readonly receipts: StoreCancelReceipt[];
  /** Its record when it was first seen to have ended. */
  ended?: TaskRecord & { readonly status: FinalStatus };
}

export const TENANT = 'chaos';
