import { CancellationToken, type CancelReasonInit, sleep } from '@whoa/core';
import { type Clock, systemWorld, type World } from '@whoa/core/embed';
import { CLEANUP_MS } from '@whoa/core/internal';
import type { OperatorStore, PauseTarget } from '../overview.ts';
import type { ClientStore, ListPage } from '../store.ts';
import type { TaskSummary } from '../task.ts';
import { mapInBatches } from './map-in-batches.ts';

export interface HaltOptions {
  /** Why, for every task that is stopped. */
  readonly reason?: CancelReasonInit | undefined;
  /** How the tasks stop. Defaults to `now`. */
  readonly mode?: 'graceful' | 'now' | 'kill' | undefined;
  /** Also stops tasks that only wait for an answer. */
  readonly parked?: boolean | undefined;
  /** How long to wait until nothing runs. Defaults to 30 s. */
  readonly waitMs?: number | undefined;
  /** Ends the wait. What was halted stays halted. */
  readonly signal?: AbortSignal | undefined;
  /** Called with the tasks that still live, each round. */
  readonly onRound?: ((live: readonly TaskSummary[]) => Promise<void>) | undefined;
  readonly world?: World | undefined;
}

/** A task that did not end while the halt waited. */
interface StillRunning extends Pick<TaskSummary, 'id' | 'tenant' | 'agent' | 'status'> {
  /** When it will have ended at the latest, if its worker lives. Missing if it was not stopped yet. */
  readonly until?: number;
}

/** What a halt did. Delivery stays paused until it is resumed. */
export interface HaltReceipt {
  readonly target: PauseTarget;
  /** Nothing of the target runs. */
  readonly isQuiet: boolean;
  /** How many tasks this halt stopped. */
  readonly stopped: number;
  /** How many tasks of the target still run. */
  readonly left: number;
  /** The first of them, at most 100. */
  readonly running: readonly StillRunning[];
  /** How many tasks of the target wait for an answer, and stay. */
  readonly waiting: number;
  /** How many tasks outside the target run. */
  readonly others: number;
}

const WAIT_MS = 30_000;
const ROUND_MS = 100;
const PAGE = 1_000;
const MAX_NAMED = 100;
/** How much of a journal is looked at for calls that must finish. */
const MAX_ENTRIES = 10_000;

/** Waiting tasks first, so that none of them starts because another was stopped. */
const LIVE = ['init', 'running', 'cancelling'] as const;

type HaltStore = Pick<ClientStore, 'list' | 'cancel' | 'read'> & Pick<OperatorStore, 'pause' | 'queues' | 'tenants'>;

/**
 * Pauses delivery for an agent, a tenant or all, stops their tasks, and waits until none of them runs. The pause is stored:
 * it also holds for tasks and tenants that come later, until it is resumed. Tasks that only wait for an answer stay.
 *
 * @returns A receipt. If it is not quiet, halt again.
 */
export async function haltTasks(
  store: HaltStore,
  target: PauseTarget,
  options: HaltOptions = {},
): Promise<HaltReceipt> {
  await store.pause(target, true);
  const { now } = await store.queues({ limit: 1 });
  const halt = new Halt(store, target, { ...options, startedAt: now });
  const { left, waiting } = await halt.untilQuiet();
  const { running } = await store.queues({ limit: PAGE });
  const held = left.filter(({ stage }) => stage === 'held').length;
  const { agent } = target as { readonly agent?: string };
  const counted = Object.entries(running).filter(([name]) => name !== agent);
  const elsewhere = counted.reduce((sum, [, count]) => sum + count, 0) - (agent === undefined ? held : 0);
  return {
    target,
    isQuiet: left.length === 0,
    stopped: halt.stopped,
    left: left.length,
    running: await mapInBatches(left.slice(0, MAX_NAMED), (task) => describe(store, task)),
    waiting,
    others: 'all' in target ? 0 : Math.max(0, elsewhere),
  };
}

class Halt {
  stopped = 0;
  readonly #store: HaltStore;
  readonly #target: PauseTarget;
  readonly #options: HaltOptions & { readonly startedAt: number };
  readonly #asked = new Set<string>();

  constructor(store: HaltStore, target: PauseTarget, options: HaltOptions & { readonly startedAt: number }) {
    this.#store = store;
    this.#target = target;
    this.#options = options;
  }

  async untilQuiet(): Promise<{ readonly left: readonly TaskSummary[]; readonly waiting: number }> {
    const { waitMs = WAIT_MS, signal, onRound, world = systemWorld } = this.#options;
    const { clock } = world;
    const until = clock.now() + waitMs;
    let [tenants, wasOver]: [readonly string[] | undefined, boolean] = [undefined, false];
    for (;;) {
      const { live, waiting } = await this.#look(tenants);
      const isFresh = await this.#stop(live);
      await onRound?.(live);
      const left = live.filter(({ status, id }) => status !== 'init' || this.#asked.has(id));
      const isOver = clock.now() >= until || signal?.aborted === true;
      // What a worker took, or what ended, while this looked is found by another look at everything.
      const isLast = isFresh ? isOver && wasOver : isOver || left.length === 0;
      if (tenants === undefined && isLast) return { left, waiting };
      tenants = isOver || left.length === 0 ? undefined : [...new Set(left.map(({ tenant }) => tenant))];
      wasOver = isOver;
      if (!isOver && left.length > 0) await pause(clock, signal);
    }
  }

  /** Stops what was not stopped before. What was created after the pause waits. */
  async #stop(live: readonly TaskSummary[]): Promise<boolean> {
    const { reason = { kind: 'user' }, mode = 'now', startedAt } = this.#options;
    const isDue = ({ id, status, createdAt }: TaskSummary): boolean =>
      !this.#asked.has(id) && (status !== 'init' || createdAt <= startedAt);
    const due = live.filter(isDue);
    await mapInBatches(due, async ({ id, tenant }) => {
      const { result } = await this.#store.cancel({ tenant, id }, reason, { mode });
      this.#asked.add(id);
      if (result === 'accepted') this.stopped += 1;
    });
    return due.length > 0;
  }

  async #look(tenants?: readonly string[]): Promise<{ live: readonly TaskSummary[]; waiting: number }> {
    const { parked = false } = this.#options;
    const target = this.#target;
    const names = tenants ?? ('tenant' in target ? [target.tenant] : await this.#tenants());
    const found = (await mapInBatches(names, (tenant) => this.#list(tenant))).flat();
    const live = found.filter(({ agent }) => !('agent' in target) || agent === target.agent);
    const meant = live.filter(({ stage }) => parked || stage !== 'parked');
    return { live: meant, waiting: live.length - meant.length };
  }

  async #tenants(): Promise<readonly string[]> {
    const names: string[] = [];
    for (let cursor: string | undefined; ; ) {
      const page = await this.#store.tenants({ limit: PAGE, cursor });
      names.push(...page.tenants);
      cursor = page.next;
      if (cursor === undefined) return names;
    }
  }

  async #list(tenant: string): Promise<readonly TaskSummary[]> {
    const found = new Map<string, TaskSummary>();
    for (const status of LIVE) {
      for (let cursor: string | undefined; ; ) {
        const page: ListPage = await this.#store.list({ tenant, status, limit: 100, cursor });
        for (const task of page.tasks) found.set(task.id, task);
        cursor = page.next;
        if (cursor === undefined) break;
      }
    }
    return [...found.values()];
  }
}

/** Names a task that still runs, and when the last of its calls that must finish is given up. */
async function describe(store: HaltStore, task: TaskSummary): Promise<StillRunning> {
  const { id, tenant, agent, status, stop } = task;
  if (stop === undefined) return { id, tenant, agent, status };
  let until = stop.killAt;
  for (let after = 0; after < MAX_ENTRIES; ) {
    const entries = await store.read({ tenant, id }, { after, limit: PAGE });
    for (const { event } of entries) {
      const { type, until: own } = event as { readonly type?: unknown; readonly until?: unknown };
      if (type === 'call-waiting' && typeof own === 'number') until = Math.max(until, own);
    }
    if (entries.length === 0) break;
    after = entries.at(-1)!.position;
  }
  return { id, tenant, agent, status, until: until + CLEANUP_MS };
}

async function pause(clock: Clock, signal: AbortSignal | undefined): Promise<void> {
  const token = signal && CancellationToken.from(signal);
  await sleep(ROUND_MS, { clock, token }).catch(() => {});
  token?.[Symbol.dispose]();
}
