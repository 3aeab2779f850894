import type { VirtualClock } from '@whoa/core/testing';
import type { Runner, TaskStore } from '@whoa/tasks';
import type { Violation } from '../../packages/core/src/testing/history.ts';
import type { SimulatedProcess } from './process.ts';
import type { Chance } from './random.ts';

/** A process and the store as it reaches it. */
export interface Visitor {
  readonly process: SimulatedProcess;
  readonly store: TaskStore;
}

/** What those who take part in a history have of it. */
export interface Stage {
  readonly tasks: typeof import('@whoa/tasks');
  readonly chance: Chance;
  readonly clock: VirtualClock;
  /** The store itself: for judges. */
  readonly store: TaskStore;
  /** The store as users reach it. */
  readonly client: TaskStore;
  readonly workers: readonly { readonly runner: Runner }[];
  /** Within this time users begin what they do. */
  readonly workMs: number;
  readonly violations: Violation[];
  /** Lets one more process come. */
  visit(name: string): Visitor;
  /** What a user does: a history is not over before it was done. */
  userAt(ms: number, act: () => Promise<unknown>): void;
  /** What a user does may fail: they are users. */
  attempt(act: () => Promise<unknown>): void;
  readonly retryWhileUnavailable: <T>(ask: () => Promise<T>) => Promise<T | undefined>;
}
