import { type Clock, systemWorld, type World } from '@whoa/core/embed';
import type { OperatorStore } from '../overview.ts';
import type { ClientStore } from '../store.ts';
import type { ConversationRef } from '../task.ts';
import { cancelTasks } from './cancel-tasks.ts';
import { mapInBatches } from './map-in-batches.ts';

/** Everything of a tenant, or of one of its conversations. */
export type EraseTarget = { readonly tenant: string } | ConversationRef;

export interface EraseOptions {
  /** How long to wait for running tasks to end. Defaults to 60 s. */
  readonly waitMs?: number | undefined;
  /** Stops in the middle. What was removed stays removed; the receipt says how much. */
  readonly signal?: AbortSignal | undefined;
  /** Who asked, for the tasks that are cancelled. */
  readonly by?: string | undefined;
  readonly world?: World | undefined;
}

/** What was removed. Keep it as evidence: the store has no trace of what it lists. */
export interface EraseReceipt {
  readonly tenant: string;
  readonly conversation?: string;
  /** How many tasks were cancelled because they had not ended. */
  readonly cancelled: number;
  /** How many tasks were removed, with their inputs, outcomes and journals. */
  readonly tasks: number;
  /** How many conversations were removed, with their histories. */
  readonly conversations: number;
  /** Ids of tasks that were still running at the end, at most 100. */
  readonly live: readonly string[];
  /** Nothing is left. If not, erase again. */
  readonly isComplete: boolean;
  readonly startedAt: number;
  readonly endedAt: number;
}

const WAIT_MS = 60_000;
const POLL_INTERVAL_MS = 250;
const MAX_SHOWN = 100;

/**
 * Removes everything of a tenant or a conversation: cancels what runs, waits until it has ended, removes tasks,
 * journals and histories. Stop creating tasks for it first. Archived copies and backups are yours to remove.
 *
 * @returns A receipt.
 */
export async function eraseRecords(
  store: ClientStore & OperatorStore,
  target: EraseTarget,
  { waitMs = WAIT_MS, signal, by, world = systemWorld }: EraseOptions = {},
): Promise<EraseReceipt> {
  const { clock } = world;
  const startedAt = clock.now();
  const until = clock.now() + waitMs;
  const erasure = new Erasure(store, target, by);
  for (;;) {
    await erasure.cancelLive(signal);
    // Look before removing: a task that ends in between is removed too.
    const live = await erasure.live();
    await erasure.removeTasks(signal);
    const isOver = live.length === 0 || signal?.aborted === true || clock.now() >= until;
    if (isOver) {
      if (signal?.aborted !== true) await erasure.removeConversations(signal);
      const isComplete = signal?.aborted !== true && (await erasure.isEmpty());
      return {
        ...target,
        ...erasure.removed,
        live: isComplete ? [] : live.slice(0, MAX_SHOWN),
        isComplete,
        startedAt,
        endedAt: clock.now(),
      };
    }
    await pause(clock, signal);
  }
}

class Erasure {
  readonly removed = { cancelled: 0, tasks: 0, conversations: 0 };
  readonly #store: ClientStore & OperatorStore;
  readonly #target: EraseTarget;
  readonly #by: string | undefined;
  readonly #cancelled = new Set<string>();

  constructor(store: ClientStore & OperatorStore, target: EraseTarget, by: string | undefined) {
    this.#store = store;
    this.#target = target;
    this.#by = by;
  }

  async cancelLive(signal: AbortSignal | undefined): Promise<void> {
    const by = this.#by;
    const reason = { kind: 'user' as const, message: 'its records are erased', ...(by !== undefined && { by }) };
    for (let cursor: string | undefined; signal?.aborted !== true; ) {
      const page = await cancelTasks(this.#store, { ...this.#target, reason, mode: 'now', cursor });
      for (const { id, result } of page.tasks) if (result === 'accepted') this.#cancelled.add(id);
      this.removed.cancelled = this.#cancelled.size;
      cursor = page.next;
      if (cursor === undefined) return;
    }
  }

  async removeTasks(signal: AbortSignal | undefined): Promise<void> {
    const { tenant } = this.#target;
    for (let cursor: string | undefined; signal?.aborted !== true; ) {
      const page = await this.#store.list({ ...this.#target, ...(cursor !== undefined && { cursor }) });
      const ended = page.tasks.filter(({ endedAt }) => endedAt !== undefined);
      const receipts = await mapInBatches(ended, ({ id }) => this.#store.remove({ tenant, id }));
      this.removed.tasks += receipts.filter(({ result }) => result === 'removed').length;
      cursor = page.next;
      if (cursor === undefined) return;
    }
  }

  async removeConversations(signal: AbortSignal | undefined): Promise<void> {
    const { tenant } = this.#target;
    for (let cursor: string | undefined; signal?.aborted !== true; ) {
      const page = await this.#conversations(cursor);
      const receipts = await mapInBatches(page.conversations, (conversation) =>
        this.#store.remove({ tenant, conversation }),
      );
      this.removed.conversations += receipts.filter(({ result }) => result === 'removed').length;
      cursor = page.next;
      if (cursor === undefined) return;
    }
  }

  async live(): Promise<string[]> {
    const found: string[] = [];
    for (let cursor: string | undefined; found.length <= MAX_SHOWN; ) {
      const page = await cancelTasks(this.#store, { ...this.#target, dryRun: true, cursor });
      found.push(...page.tasks.map(({ id }) => id));
      cursor = page.next;
      if (cursor === undefined) break;
    }
    return found;
  }

  async isEmpty(): Promise<boolean> {
    const { tasks } = await this.#store.list({ ...this.#target, limit: 1 });
    return tasks.length === 0 && (await this.#conversations(undefined)).conversations.length === 0;
  }

  async #conversations(
    cursor: string | undefined,
  ): Promise<{ readonly conversations: readonly string[]; readonly next?: string }> {
    const target = this.#target;
    if (!('conversation' in target)) {
      return this.#store.conversations({ ...target, ...(cursor !== undefined && { cursor }) });
    }
    const found = await this.#store.conversation(target);
    return { conversations: found === undefined ? [] : [target.conversation] };
  }
}

async function pause(clock: Clock, signal: AbortSignal | undefined): Promise<void> {
  const over = Promise.withResolvers<void>();
  const timer = clock.setTimer(POLL_INTERVAL_MS, over.resolve);
  const stop = (): void => over.resolve();
  signal?.addEventListener('abort', stop, { once: true });
  await over.promise;
  signal?.removeEventListener('abort', stop);
  timer[Symbol.dispose]();
}
