import type { Message } from '@whoa/core';
import { ModelError } from '@whoa/core/model';
import type { RunnerOptions, TaskStore } from '@whoa/tasks';
import type { Violation } from '../../packages/core/src/testing/history.ts';
import type { Random } from './random.ts';

const TENANTS = ['acme', 'globex'] as const;
const DOWN = 'the provider is down';
/** An outage ends within this time, unless the provider stays down. */
const OUTAGE_MS = 12_000;
const BACKOFF = { backoffMs: 400, maxBackoffMs: 3_000 };

/** A model provider that is down once or twice for a while, or permanently. */
export class Provider {
  readonly #isGone: boolean;
  readonly #random: Random;
  #isDown = false;
  /** Whether a model saw that its process was restarted. */
  #isRestartSeen = false;

  constructor(random: Random) {
    this.#random = random;
    this.#isGone = random.oneIn(4);
  }

  /** The wait for a provider that stays down must end early enough for the tasks behind. */
  get rule(): NonNullable<RunnerOptions['waitForProvider']> {
    return { ...BACKOFF, maxMs: this.#isGone ? 6_000 : 300_000 };
  }

  plan(at: (ms: number, happen: () => unknown) => void, workMs: number): void {
    const random = this.#random;
    for (let i = 1 + random.below(2); i > 0; i--) {
      const beginsAt = random.below(workMs);
      at(beginsAt, () => (this.#isDown = true));
      if (!this.#isGone) at(beginsAt + 1 + random.below(OUTAGE_MS), () => this.stopFaults());
    }
  }

  stopFaults(): void {
    this.#isDown = this.#isGone && this.#isDown;
  }

  /** Throws while it is down, sometimes after the first words of a reply. */
  request(history: readonly Message[], emit: (event: { readonly type: 'text'; readonly text: string }) => void): void {
    this.#isRestartSeen ||= history.some(({ content }) => JSON.stringify(content).includes('was restarted'));
    if (!this.#isDown) return;
    if (this.#random.oneIn(3)) emit({ type: 'text', text: 'words that came before' });
    const retryAfterMs = this.#random.oneIn(4) ? this.#random.below(2_000) : undefined;
    throw new ModelError(DOWN, { isRetryable: true, retryAfterMs });
  }

  /** `isQuiet`: nothing but the provider failed. */
  async judge(store: TaskStore, violations: Violation[], isQuiet: boolean): Promise<void> {
    for (const tenant of TENANTS) {
      for (const { id, outcome, crashes } of (await store.list({ tenant })).tasks) {
        if (!this.#isGone && outcome?.error?.message === DOWN)
          violations.push({ promise: 'P2', what: `${id}: it failed, and the provider came back` });
        if (isQuiet && crashes > 0) violations.push({ promise: 'P1', what: `${id}: it waited, and that was a crash` });
      }
    }
    if (isQuiet && this.#isRestartSeen)
      violations.push({ promise: 'P6', what: 'a model saw a restart, and nothing was restarted' });
  }

  /** A task that is being cancelled must not wait for the provider. */
  async checkCancelling(store: TaskStore, violations: Violation[]): Promise<void> {
    for (const tenant of TENANTS) {
      for (const { id, status, stage } of (await store.list({ tenant, status: 'cancelling' })).tasks) {
        if (stage === 'delayed') violations.push({ promise: 'P3', what: `${id}: it is ${status}, and put off` });
      }
    }
  }
}
