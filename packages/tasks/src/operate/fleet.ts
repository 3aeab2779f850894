import { SETTLE } from '../ledger/rules/rules.ts';
import type { OperatorStore, PauseTarget, Queue } from '../overview.ts';

/** One agent, over all tenants. */
interface AgentLoad {
  readonly agent: string;
  readonly ready: number;
  readonly running: number;
  /** How long the oldest ready task has waited. */
  readonly oldestWaitMs: number;
  /** How many workers wait for its tasks now. */
  readonly waiting: number;
  readonly isPaused: boolean;
  /** Tasks wait, and no worker waits for them or runs any: start one that has this agent. */
  readonly isUnserved: boolean;
}

/** The state of a fleet. */
export interface FleetLoad {
  readonly agents: readonly AgentLoad[];
  readonly paused: readonly PauseTarget[];
  /** Tasks that were cancelled and wait for a worker to settle them. */
  readonly unsettled: number;
  /** There are more queues than were read. */
  readonly hasMore: boolean;
}

const MAX_QUEUES = 10_000;
/** Small enough that a server with many other requests hardly notices a page. */
const PAGE = 50;

/**
 * Summarises the queues and workers of a store by agent. For operators: it crosses tenants.
 *
 * @returns Every agent that has tasks ready or running, or workers.
 */
export async function readFleetLoad(store: Pick<OperatorStore, 'queues' | 'workers'>): Promise<FleetLoad> {
  const first = await store.queues({ limit: PAGE });
  const { running, paused, now } = first;
  const [queues, waiters] = [[...first.queues], { ...first.waiting }];
  let { next } = first;
  while (next !== undefined && queues.length < MAX_QUEUES) {
    const page = await store.queues({ limit: PAGE, cursor: next });
    queues.push(...page.queues);
    Object.assign(waiters, page.waiting);
    next = page.next;
  }
  const { workers } = await store.workers();
  const names = new Set([
    ...queues.map(({ agent }) => agent),
    ...Object.keys(running),
    ...workers.flatMap(({ waitsFor }) => waitsFor),
  ]);
  const agents = [...names].filter((agent) => agent !== SETTLE).toSorted();
  const byAgent = Map.groupBy(queues, ({ agent }) => agent);
  return {
    agents: agents.map((agent) => {
      const own = byAgent.get(agent) ?? [];
      const waiting = waiters[agent] ?? workers.filter(({ waitsFor }) => waitsFor.includes(agent)).length;
      const isPaused = paused.some((target) => 'all' in target || ('agent' in target && target.agent === agent));
      const count = { ready: countReady(own), running: running[agent] ?? 0 };
      const isUnserved = count.ready > 0 && waiting === 0 && count.running === 0 && !isPaused;
      return { agent, ...count, oldestWaitMs: measureOldestWait(own, now), waiting, isPaused, isUnserved };
    }),
    paused,
    unsettled: countReady(byAgent.get(SETTLE) ?? []),
    hasMore: next !== undefined,
  };
}

function countReady(queues: readonly Queue[]): number {
  return queues.reduce((sum, { ready }) => sum + ready, 0);
}

function measureOldestWait(queues: readonly Queue[], now: number): number {
  return queues.reduce((oldest, { oldestReadyAt }) => Math.max(oldest, now - oldestReadyAt), 0);
}
