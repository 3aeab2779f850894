import type { JournalEntry, StopOrder, TaskRef } from '../task.ts';

/** Reports changes to clients and workers. */
export interface ChangeSource {
  /**
   * Reports changes, at least once each. Don't trust a hint, only the order it carries. Resolves once it is listening.
   * Workers pass their name and get hints about their tasks and about new work; other callers pass a tenant.
   */
  watch(filter: WatchFilter, listener: (hint: Hint) => void): Promise<AsyncDisposable>;
}

/**
 * Every field that is set must match. Callers that act for a user must set the tenant; only workers may leave it out.
 */
export interface WatchFilter {
  readonly tenant?: string | undefined;
  readonly worker?: string | undefined;
  readonly conversation?: string | undefined;
  readonly id?: string | undefined;
  /** Only what this process made ready for engines to deliver. */
  readonly offers?: boolean | undefined;
  /** Also what the task says before its journal has it. Needs a tenant and an id. */
  readonly words?: boolean | undefined;
  /** Only what is new in the feed, for this consumer. */
  readonly feed?: string | undefined;
}

/** A change to a task. `resync`: any task may have changed. */
export type Hint =
  | {
      readonly type: 'status' | 'cancel' | 'command' | 'preferred' | 'journal';
      readonly id: string;
      readonly tenant: string;
      readonly worker?: string;
      readonly conversation?: string;
      /**
       * The order itself, with `cancel`, for a watching worker. A store includes it only when no other process can
       * write to the source it was read from. Without it, the worker must beat.
       */
      readonly order?: PushedOrder;
    }
  /** Words of a task that its journal does not have yet, for watchers with `words`. */
  | { readonly type: 'frame'; readonly id: string; readonly tenant: string; readonly frame: Frame }
  /** For the worker of a task: somebody reads it, in the process with this inbox. */
  | {
      readonly type: 'watched';
      readonly id: string;
      readonly tenant: string;
      readonly worker: string;
      readonly reader: string;
    }
  /** A task became ready for an agent of this worker, which was waiting for one. */
  | { readonly type: 'ready'; readonly worker: string; readonly agent: string }
  /** A task that an engine delivers became ready, or will at `startsAt`. Only for watchers with `offers`. */
  | { readonly type: 'offer'; readonly task: OfferedTask }
  /** A part of the feed has something new for this consumer, for the process that reads it; without a reader, it is free. */
  | { readonly type: 'feed'; readonly consumer: string; readonly part: number; readonly reader?: string }
  | { readonly type: 'resync' };

/** A task that waits for its engine. */
export interface OfferedTask extends TaskRef {
  readonly agent: string;
  readonly priority: number;
  readonly startsAt?: number;
}

/** What the holder of one claim must do. It never becomes invalid: orders only become stricter. */
export interface PushedOrder {
  readonly epoch: number;
  /** The claim that the order is for. */
  readonly claim: string;
  readonly orderNumber: number;
  readonly stop: StopOrder;
}

/** Part of what one claim says, while the journal does not have it. */
export interface Frame {
  readonly epoch: number;
  readonly claimHash: string;
  /** How much of it the journal has, and its last position. */
  readonly kept: number;
  readonly position: number;
  /** What came before these events, and what has been said with them. */
  readonly from: number;
  readonly to: number;
  readonly at: number;
  readonly events: readonly Pick<JournalEntry, 'event' | 'said'>[];
}
