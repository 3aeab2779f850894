import type { VirtualClock } from '@whoa/core/testing';
import type { Runner, TaskStore } from '@whoa/tasks';
import type { Violation } from '../../packages/core/src/testing/history.ts';
import type { SimulatedProcess } from './process.ts';
import type { Random } from './random.ts';

/** A process and its connection to the store. */
export interface Client {
  readonly process: SimulatedProcess;
  readonly store: TaskStore;
}

/** The parts of a simulated run that its participants share. */
export interface SimulationContext {
  readonly tasks: typeof import('@whoa/tasks');
  readonly random: Random;
  readonly clock: VirtualClock;
  /** The store itself, without a network, for verification. */
  readonly store: TaskStore;
  /** The store as users reach it. */
  readonly client: TaskStore;
  readonly workers: readonly { readonly runner: Runner }[];
  /** Users start new work within this time. */
  readonly workMs: number;
  readonly violations: Violation[];
  /** Starts one more client process. */
  connectClient(name: string): Client;
  /** Plans a user action: a simulated run ends only after it was done. */
  userAt(ms: number, act: () => Promise<unknown>): void;
  /** Runs a user action that may fail. */
  attempt(act: () => Promise<unknown>): void;
  readonly retryWhileUnavailable: <T>(ask: () => Promise<T>) => Promise<T | undefined>;
}
