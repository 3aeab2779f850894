import type { World } from '@whoa/core/embed';
import type { TaskStore } from '../../store.ts';
import type { HandBack } from './hand-back.ts';

/** A failed request to the store is retried after this share of a lease. */
export const RETRY: number = 1 / 20;
/** How often the worker and the store compare their tasks by id, even if the counts match. */
export const RECOUNT_MS = 60_000;

export interface SessionOptions {
  readonly store: TaskStore;
  readonly domain: number;
  readonly worker: string;
  readonly leaseMs: number;
  readonly world: World;
  readonly handBack: HandBack;
  readonly onStoreError: (error: unknown) => void;
  /** Sessions of other workers have expired, or records are past their retention: one worker should sweep. */
  readonly onExpired: (domain: number) => void;
  /** Runs work that no caller awaits. */
  readonly background: (work: Promise<unknown>) => void;
}
