import { setTimeout as wait } from 'node:timers/promises';
import { type LoopbackProvider, startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { createAgent } from '@whoa/core';
import { createRunner, followTask, isFinalStatus, type TaskStore, type TaskSummary } from '@whoa/tasks';
import { loopbackModel } from '../ai-sdk/providers.ts';
import { openStore } from './open-store.ts';
import type { SharedStoreKind } from './shared-stores.ts';

interface CampaignOptions {
  readonly tasks: number;
  /**
   * The minimum time for which the provider responds with 529, and then refuses connections, until each task was
   * delayed.
   */
  readonly phaseMs: number;
  readonly rule: Readonly<Record<'maxMs' | 'backoffMs' | 'maxBackoffMs', number>>;
}

export interface ProviderDownReport {
  readonly seconds: number;
  readonly ended: Readonly<Record<string, number>>;
  /** The most requests in any tenth of the longest wait after the provider recovered. */
  readonly peak: number;
  /** Requests while it responded with 529, and after it recovered. */
  readonly requests: readonly [down: number, up: number];
  readonly violations: readonly string[];
}

const TENANT = 'acme';
const MAX_SHOWN = 5;
const POLL_INTERVAL_MS = 250;
const WORKERS = 2;
const ANSWER = 'All is well.';
/** One reply in this many breaks off after its first words. */
const CUT_ONE_IN = 10;

/** Runs tasks whose provider is overloaded, then cannot be reached, and then is fine: a real server and real clients. */
export async function runProviderDownCampaign(
  kind: SharedStoreKind,
  { tasks, phaseMs, rule }: CampaignOptions,
): Promise<ProviderDownReport> {
  await using shared = await kind.open();
  await using store = openStore(shared.location);
  const startedAt = Date.now();
  const down = await startLoopbackProvider({ script: overloaded() });
  const runners = Array.from({ length: WORKERS }, () => startRunner(openStore(shared.location), down.url, rule));
  const arrivals: number[] = [];
  let up: LoopbackProvider | undefined;
  try {
    // All at the same time: only randomness spreads them.
    for (const { runner } of runners) await runner.serve({ concurrency: tasks / WORKERS });
    await Promise.all(
      Array.from({ length: tasks }, (_, i) => store.create({ tenant: TENANT, agent: 'clock', input: `task ${i}` })),
    );
    const [delays] = await Promise.all([allDelayed(store, tasks), wait(phaseMs)]);
    await down.close();
    await Promise.all([allDelayed(store, tasks, delays), wait(phaseMs)]);
    // It needs a worker's slot: tasks that wait must not hold one.
    await runOther(store);
    const script = () => {
      arrivals.push(Date.now());
      return { parts: [{ text: ANSWER }] };
    };
    up = await startLoopbackProvider({ script, port: Number(new URL(down.url).port) });
    const all = await allEnded(store, tasks, 4 * rule.maxBackoffMs + 60_000);
    return {
      seconds: (Date.now() - startedAt) / 1_000,
      ended: countBy(all, ({ status }) => status),
      peak: findPeak(arrivals, rule.maxBackoffMs / 10),
      requests: [down.requests.length, arrivals.length],
      violations: all.flatMap(judge).slice(0, MAX_SHOWN),
    };
  } finally {
    for (const { runner, own } of runners) {
      await runner[Symbol.asyncDispose]();
      await own[Symbol.asyncDispose]();
    }
    await down.close();
    await up?.close();
  }
}

/** Runs a task that needs a free slot of a worker. */
async function runOther(store: TaskStore): Promise<void> {
  const receipt = await store.create({ tenant: 'other', agent: 'brief', input: 0 });
  if (receipt.result !== 'created') throw new Error(receipt.result);
  const following = followTask(store, { tenant: 'other', id: receipt.task.id })[Symbol.asyncIterator]();
  while ((await following.next()).done !== true);
}

function overloaded() {
  let asked = 0;
  return () =>
    ++asked % CUT_ONE_IN === 0
      ? { parts: [{ text: ['All is ', { cut: true as const }] }] }
      : { status: 529, message: 'Overloaded' };
}

function startRunner(own: TaskStore, url: string, waitForProvider: CampaignOptions['rule']) {
  const model = loopbackModel('anthropic', url);
  const agent = createAgent({ name: 'clock', model, retry: { maxAttempts: 2, backoffMs: 200 } });
  const agents = { clock: agent, brief: () => Promise.resolve('done') };
  return { own, runner: createRunner({ store: own, agents, waitForProvider }) };
}

/** Waiting is neither a failure nor a crash, and text from before a reply broke off is not repeated. */
function judge({ id, status, outcome, crashes, attempts }: TaskSummary): readonly string[] {
  const found = { status, answer: outcome?.answer, crashes, attempts };
  const isFine = status === 'success' && outcome?.answer === ANSWER && crashes === 0 && attempts === 0;
  return isFine ? [] : [`${id}: ${JSON.stringify({ ...found, error: outcome?.error })}`];
}

type Delays = ReadonlyMap<string, number>;

/** Resolves when each task's record has shown one more time why it waits. Returns how often each has. */
async function allDelayed(store: TaskStore, count: number, before: Delays = new Map()): Promise<Delays> {
  const delays = new Map<string, number>();
  while (delays.size < count) {
    for (const { id, activity } of await readAll(store)) {
      const { attempts = 0 } = activity?.providerWait ?? {};
      if (attempts > (before.get(id) ?? 0)) delays.set(id, attempts);
    }
    await wait(POLL_INTERVAL_MS);
  }
  return delays;
}

async function allEnded(store: TaskStore, count: number, timeoutMs: number): Promise<readonly TaskSummary[]> {
  const until = Date.now() + timeoutMs;
  for (;;) {
    const all = await readAll(store);
    const isOver = all.length === count && all.every(({ status }) => isFinalStatus(status));
    if (isOver || Date.now() > until) return all;
    await wait(POLL_INTERVAL_MS);
  }
}

async function readAll(store: TaskStore): Promise<readonly TaskSummary[]> {
  const all: TaskSummary[] = [];
  for (let cursor: string | undefined, isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
    const page = await store.list({ tenant: TENANT, limit: 100, ...(cursor !== undefined && { cursor }) });
    all.push(...page.tasks);
    cursor = page.next;
  }
  return all;
}

function countBy<T>(all: readonly T[], toKey: (one: T) => string): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const one of all) counts[toKey(one)] = (counts[toKey(one)] ?? 0) + 1;
  return counts;
}

/** Returns how many times lie at most in a window of that length. */
function findPeak(times: readonly number[], windowMs: number): number {
  let [first, peak] = [0, 0];
  for (const [last, at] of times.entries()) {
    while (at - times[first]! >= windowMs) first++;
    peak = Math.max(peak, last - first + 1);
  }
  return peak;
}
