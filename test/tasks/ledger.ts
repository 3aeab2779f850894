import type { TaskStore } from '@whoa/tasks';

/** What a store has acknowledged about one task: the least that must be true of it for ever. */
interface Acknowledged {
  position: number;
  cancelled: boolean;
  ended: boolean;
}

export interface LedgerReport {
  readonly tasks: number;
  /** Operations that were answered. */
  readonly acknowledged: number;
  /** Operations whose outcome is unknown, by the store's own word. */
  readonly unknown: number;
  /** Operations that were refused: nothing was changed. */
  readonly refused: number;
  /** Operations that were answered and are not there. */
  readonly lost: number;
  readonly examples: readonly string[];
}

const TENANT = 'ledger';

/** Works on tasks as fast as it is answered, and writes down every answer. */
export class Ledger {
  readonly #tasks = new Map<string, Acknowledged>();
  #acknowledged = 0;
  #unknown = 0;
  #refused = 0;
  #stopped = false;

  get acknowledged(): number {
    return this.#acknowledged;
  }

  /** Works until told to stop, on so many tasks at once. */
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

  async judge(store: TaskStore): Promise<LedgerReport> {
    const examples: string[] = [];
    let lost = 0;
    for (const [id, { position, cancelled, ended }] of this.#tasks) {
      const record = await store.get({ tenant: TENANT, id });
      const isEnded = record?.endedAt !== undefined;
      const losses = [
        record === undefined && 'the task is gone',
        (record?.position ?? 0) < position && `${position} entries acknowledged, ${record?.position ?? 0} there`,
        cancelled && record?.stop === undefined && !isEnded && 'a cancel was accepted and is gone',
        ended && !isEnded && 'an end was acknowledged and is gone',
      ].filter((loss) => loss !== false);
      lost += losses.length;
      if (losses.length > 0 && examples.length < 5) examples.push(`${id}: ${losses.join(', ')}`);
    }
    const { size: tasks } = this.#tasks;
    return {
      tasks,
      acknowledged: this.#acknowledged,
      unknown: this.#unknown,
      refused: this.#refused,
      lost,
      examples,
    };
  }

  async #live(store: TaskStore): Promise<void> {
    const receipt = await store.create({ tenant: TENANT, agent: 'a', input: 'x' });
    this.#acknowledged++;
    if (receipt.answer !== 'created') throw new Error(`created: ${receipt.answer}`);
    const { id } = receipt.task;
    const known: Acknowledged = { position: 0, cancelled: false, ended: false };
    this.#tasks.set(id, known);
    const claim = await store.claim(id, 'w', 600_000);
    this.#acknowledged++;
    if (claim.answer !== 'claimed') return;
    for (let after = 0; after < 2; after++) {
      await store.append(id, 1, { after, events: [{ said: after }] });
      this.#acknowledged++;
      known.position = after + 1;
    }
    if (this.#tasks.size % 2 === 0) {
      await store.cancel({ tenant: TENANT, id });
      this.#acknowledged++;
      known.cancelled = true;
    }
    await store.finish(id, 1, { status: 'success' });
    this.#acknowledged++;
    known.ended = true;
  }

  /** Whatever is not one of these is a fault of the store. */
  #count(error: unknown): void {
    const { code } = error as { code?: string };
    if (code === 'UNKNOWN_OUTCOME') this.#unknown++;
    else if (code === 'STORE_BUSY') this.#refused++;
    // After a failover a task may be gone, or its claim; the judge will say so.
    else if (code !== 'LEASE_LOST' && code !== 'JOURNAL_GAP') throw error;
  }
}
