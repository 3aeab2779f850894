import type { World } from '@whoa/core/embed';
import type { TaskStore } from '../../store.ts';
import type { HandBack } from './hand-back.ts';

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
