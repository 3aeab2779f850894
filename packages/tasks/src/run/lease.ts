import type { CancellationToken, Clock } from '@whoa/core';
import { LeaseLostError } from '../errors.ts';
import type { Orders, TaskStore } from '../store.ts';

export interface LeaseOptions {
  readonly store: TaskStore;
  readonly id: string;
  readonly epoch: number;
  readonly leaseMs: number;
  /** When the store was asked for the claim. */
  readonly askedAt: number;
  readonly clock: Clock;
  /** The work the lease is for. */
  readonly token: CancellationToken;
  readonly onOrders: (orders: Orders) => void;
  readonly onLost: (error: LeaseLostError) => void;
  readonly onStoreError: (error: unknown) => void;
}

/**
 * Renews a claim, and stops its work in time when it cannot: asks at two thirds of the lease, and has stopped waiting
 * before it ends. Nobody else can hold the task by then.
 */
export class Lease implements Disposable {
  readonly #options: LeaseOptions;
  #renewal: Disposable | undefined;
  #fence: Disposable | undefined;
  #over: Disposable | undefined;
  #ended = false;

  constructor(options: LeaseOptions) {
    this.#options = options;
    this.#extend(options.askedAt);
  }

  [Symbol.dispose](): void {
    this.#ended = true;
    this.#renewal?.[Symbol.dispose]();
    this.#fence?.[Symbol.dispose]();
    this.#over?.[Symbol.dispose]();
  }

  /** Counts from when the store was asked, not from when it answered: the answer may have taken long. */
  #extend(askedAt: number): void {
    const { clock, leaseMs, id, epoch, onLost } = this.#options;
    const left = askedAt + leaseMs - clock.now();
    this.#renewal?.[Symbol.dispose]();
    this.#fence?.[Symbol.dispose]();
    this.#over?.[Symbol.dispose]();
    this.#renewal = clock.setTimer(Math.max(0, left - (leaseMs * 2) / 3), () => this.#renewSoon());
    this.#fence = clock.setTimer(Math.max(0, left - leaseMs / 3), () => this.#stopWork());
    // A store that never answers again would keep the last words waiting for ever.
    this.#over = clock.setTimer(Math.max(0, left), () => onLost(new LeaseLostError(id, epoch)));
  }

  #stopWork(): void {
    const { token, leaseMs } = this.#options;
    const message = 'the store could not be reached in time to keep the task';
    token.cancel({ kind: 'lease-lost', message }, { how: { abortMs: leaseMs / 4 } });
  }

  #renewSoon(): void {
    this.#renew().catch((error: unknown) => this.#options.onStoreError(error));
  }

  async #renew(): Promise<void> {
    const { store, id, epoch, leaseMs, clock } = this.#options;
    const askedAt = clock.now();
    try {
      const orders = await store.renew(id, epoch, leaseMs);
      if (this.#ended) return;
      this.#extend(askedAt);
      this.#options.onOrders(orders);
    } catch (error) {
      if (this.#ended) return;
      if (error instanceof LeaseLostError) {
        this.#options.onLost(error);
        return;
      }
      this.#options.onStoreError(error);
      this.#renewal = clock.setTimer(leaseMs / 20, () => this.#renewSoon());
    }
  }
}
