import type { StoreRules } from '../driver.ts';
import type { DatabaseFunctions } from './functions.ts';

/** Old records are removed after this many tasks were created, this many at once. */
const CREATED_PER_FORGETTING = 50;
const MAX_FORGOTTEN = 200;
/** How long a session is kept after it ended or last held a task. */
const SESSION_RETENTION_MS = 24 * 3_600_000;

/** Removes records past their retention in the background, so that creating a task does not wait for it. */
export class Forgetting implements AsyncDisposable {
  readonly #functions: DatabaseFunctions;
  readonly #values: readonly unknown[];
  #created = 0;
  #forgetting: Promise<void> | undefined;

  constructor(functions: DatabaseFunctions, rules: StoreRules) {
    this.#functions = functions;
    const kept = [() => rules.retentionMs, () => rules.conversationRetentionMs];
    this.#values = [...kept, SESSION_RETENTION_MS, MAX_FORGOTTEN];
  }

  countCreated(): void {
    this.#created = (this.#created + 1) % CREATED_PER_FORGETTING;
    if (this.#created === 0) this.#forgetting ??= this.#forget().finally(() => (this.#forgetting = undefined));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#forgetting;
  }

  async #forget(): Promise<void> {
    try {
      await this.#functions.read('create', 'forget', this.#values);
    } catch {
      // Try again another time.
    }
  }
}
