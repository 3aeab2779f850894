import { CancellationToken, sleep } from '@whoa/core';
import { type Clock, systemWorld, type World } from '@whoa/core/embed';
import type { OperatorStore } from '../overview.ts';
import type { ClientStore, TaskStore } from '../store.ts';
import type { ConversationRef, TaskRef } from '../task.ts';
import { cancelTasks } from './cancel-tasks.ts';
import { mapInBatches } from './map-in-batches.ts';
import { readPages } from './read-pages.ts';

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
  store: ClientStore & OperatorStore & Pick<TaskStore, 'feed'>,
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
      await store.feed.forget(target);
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
    const reason = { kind: 'user' as const, message: 'its records are erased', ...(this.#by && { by: this.#by }) };
    const read = (cursor: string | undefined) =>
      cancelTasks(this.#store, { ...this.#target, reason, mode: 'now', cursor });
    for await (const { tasks } of readPages(read, signal)) {
      for (const { id, result } of tasks) if (result === 'accepted') this.#cancelled.add(id);
      this.removed.cancelled = this.#cancelled.size;
    }
  }

  async removeTasks(signal: AbortSignal | undefined): Promise<void> {
    const { tenant } = this.#target;
    for await (const { tasks } of readPages((cursor) => this.#store.list({ ...this.#target, cursor }), signal)) {
      const ended = tasks.filter(({ endedAt }) => endedAt !== undefined);
      this.removed.tasks += await this.#remove(ended.map(({ id }) => ({ tenant, id })));
    }
  }

  async removeConversations(signal: AbortSignal | undefined): Promise<void> {
    const { tenant } = this.#target;
    for await (const { conversations } of readPages((cursor) => this.#conversations(cursor), signal))
      this.removed.conversations += await this.#remove(conversations.map((conversation) => ({ tenant, conversation })));
  }

  async #remove(targets: readonly (TaskRef | ConversationRef)[]): Promise<number> {
    const receipts = await mapInBatches(targets, (target) => this.#store.remove(target));
    return receipts.filter(({ result }) => result === 'removed').length;
  }

  async live(): Promise<string[]> {
    const found: string[] = [];
    const read = (cursor: string | undefined) => cancelTasks(this.#store, { ...this.#target, dryRun: true, cursor });
    for await (const { tasks } of readPages(read)) {
      found.push(...tasks.map(({ id }) => id));
      if (found.length > MAX_SHOWN) break;
    }
    return found;
  }

  async isEmpty(): Promise<boolean> {
    const { tasks } = await this.#store.list({ ...this.#target, limit: 1 });
    return tasks.length === 0 && (await this.#conversations(undefined)).conversations.length === 0;
  }

  async #conversations(cursor: string | undefined): ReturnType<OperatorStore['conversations']> {
    const target = this.#target;
    if (!('conversation' in target)) {
      return this.#store.conversations({ ...target, cursor });
    }
    const found = await this.#store.conversation(target);
    return { conversations: found === undefined ? [] : [target.conversation] };
  }
}

async function pause(clock: Clock, signal: AbortSignal | undefined): Promise<void> {
  const token = signal && CancellationToken.from(signal);
  await sleep(POLL_INTERVAL_MS, { clock, token }).catch(() => {});
  token?.[Symbol.dispose]();
}
