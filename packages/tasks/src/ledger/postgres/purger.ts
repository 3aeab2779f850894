import type { StoreRules } from '../driver.ts';
import { LIMITS } from '../rules/rules.ts';
import type { NamedValues } from './connection/database.ts';
import type { DatabaseFunctions } from './functions.ts';

/** A process removes old records when it sweeps, and after it has created this many tasks, this many at a time. */
const CREATES_PER_PURGE = 50;
const MAX_PURGED = 200;

/** Removes records past their retention. Creating a task does not wait for it. */
export class Purger implements AsyncDisposable {
  readonly #functions: DatabaseFunctions;
  readonly #values: NamedValues;
  #created = 0;
  #purging: Promise<unknown> | undefined;

  constructor(functions: DatabaseFunctions, rules: StoreRules) {
    this.#functions = functions;
    this.#values = {
      retention_ms: () => rules.retentionMs,
      conversation_retention_ms: () => rules.conversationRetentionMs,
      session_retention_ms: LIMITS.sessionRetentionMs,
    };
  }

  countCreated(): void {
    this.#created = (this.#created + 1) % CREATES_PER_PURGE;
    if (this.#created === 0) this.#purging ??= this.purge(MAX_PURGED).then(() => (this.#purging = undefined));
  }

  /** Returns whether there may be more to remove. */
  async purge(limit: number): Promise<boolean> {
    try {
      return await this.#functions.read<boolean>('sweep', 'purge', { ...this.#values, p_limit: limit });
    } catch {
      // Try again another time.
      return false;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#purging;
  }
}
