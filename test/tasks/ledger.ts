import { randomUUID } from 'node:crypto';
import type { TaskStore } from '@whoa/tasks';

/** A store's acknowledgements for one task: the minimum that must stay true. */
interface Acknowledged {
  /** When each was acknowledged, by `performance.now()`. */
  readonly createdAt: number;
  readonly entriesAt: number[];
  cancelledAt?: number;
  endedAt?: number;
}

export interface LedgerReport {
  readonly tasks: number;
  /** Operations that were answered. */
  readonly acknowledged: number;
  /** Operations whose outcome is unknown, by the store's own word. */
  readonly unknown: number;
  /** Operations that were rejected: nothing was changed. */
  readonly refused: number;
  /** Operations that were answered and are not there. */
  readonly lost: number;
  /** Writes that the server had not promised to keep: see `judge`. */
  readonly unsafe: number;
  readonly examples: readonly string[];
}

const TENANT = 'ledger';

/** Works on tasks as fast as the store responds, and records every response. */
export class Ledger {
  readonly #tasks = new Map<string, Acknowledged>();
  #acknowledged = 0;
  #unknown = 0;
  #refused = 0;
  #stopped = false;

  get acknowledged(): number {
    return this.#acknowledged;
  }

  /** Works on `concurrency` tasks at the same time until it is stopped. */
  async work(store: TaskStore, concurrency: number): Promise<void> {
    const one = async (): Promise<void> => {
      while (!this.#stopped) {
        try {
          await this.#live(store);
        } catch (error) {
          this.#count(error);
        }
      }
    };
    await Promise.all(Array.from({ length: concurrency }, one));
  }

  stop(): void {
    this.#stopped = true;
  }

  /** Writes that were acknowledged while `isUnsafe` may be gone; they are counted separately. */
  async judge(store: TaskStore, isUnsafe: (at: number) => boolean = () => false): Promise<LedgerReport> {
    const examples: string[] = [];
    let lost = 0;
    let unsafe = 0;
    for (const [id, { createdAt, entriesAt, cancelledAt, endedAt }] of this.#tasks) {
      const record = await store.get({ tenant: TENANT, id });
      const isEnded = record?.endedAt !== undefined;
      const entries = record?.position ?? 0;
      const losses: [at: number | undefined, what: string][] = [
        [record ? undefined : createdAt, 'the task is gone'],
        [entriesAt[entries], `${entriesAt.length} entries acknowledged, ${entries} there`],
        [record?.stop || isEnded ? undefined : cancelledAt, 'a cancel was accepted and is gone'],
        [isEnded ? undefined : endedAt, 'an end was acknowledged and is gone'],
      ];
      for (const [at, what] of losses) {
        if (at === undefined) continue;
        if (isUnsafe(at)) unsafe++;
        else if (++lost <= 5) examples.push(`${id}: ${what}`);
      }
    }
    const { size: tasks } = this.#tasks;
    return {
      tasks,
      acknowledged: this.#acknowledged,
      unknown: this.#unknown,
      refused: this.#refused,
      lost,
      unsafe,
      examples,
    };
  }

  async #live(store: TaskStore): Promise<void> {
    const receipt = await store.create({ tenant: TENANT, agent: 'a', input: 'x' });
    this.#acknowledged++;
    if (receipt.result !== 'created') throw new Error(`created: ${receipt.result}`);
    const { id } = receipt.task;
    const known: Acknowledged = { createdAt: performance.now(), entriesAt: [] };
    this.#tasks.set(id, known);
    const request = { session: randomUUID(), claim: randomUUID(), worker: 'w', leaseMs: 600_000 };
    const answer = await store.claim(id, request);
    this.#acknowledged++;
    if (answer.result !== 'claimed') return;
    const by = answer.claim;
    for (let after = 0; after < 2; after++) {
      await store.append(by, { after, events: [{ said: after }] });
      this.#acknowledged++;
      known.entriesAt.push(performance.now());
    }
    if (this.#tasks.size % 2 === 0) {
      await store.cancel({ tenant: TENANT, id });
      this.#acknowledged++;
      known.cancelledAt = performance.now();
    }
    await store.finish(by, { status: 'success' });
    this.#acknowledged++;
    known.endedAt = performance.now();
  }

  /** Whatever is not one of these is a fault of the store. */
  #count(error: unknown): void {
    const { code } = error as { code?: string };
    if (code === 'UNKNOWN_OUTCOME') this.#unknown++;
    else if (code === 'STORE_BUSY') this.#refused++;
    // After a failover a task or its claim may be gone; `judge` reports it.
    else if (code !== 'LEASE_LOST' && code !== 'JOURNAL_GAP') throw error;
  }
}
