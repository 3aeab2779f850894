// Random trees of agents with limits in money, against a record of what their providers reported.
import { createAgent, createAgentTool, type RunEvent, type Tool } from '@whoa/core';
import { type Model, ModelError, type ModelPart } from '@whoa/core/model';
import { createVirtualWorld, flushMicrotasks } from '@whoa/core/testing';
import { tool } from '../tasks/runner-set-up.ts';

type Random = () => number;

/** One run with a limit, as the outside sees it. */
interface Witness {
  readonly name: string;
  /** What providers reported for it and the runs inside it, in millionths of a dollar. */
  reported: number;
  /** What they reported in the moment in which their request was stopped: it may not have been read. */
  unread: number;
  last: { readonly spent: number; readonly reserved: number; readonly limit: number } | undefined;
  end: { readonly spent: number; readonly estimated: number; readonly reserved: number } | undefined;
}

interface Tree {
  readonly random: Random;
  readonly faults: string[];
  readonly world: ReturnType<typeof createVirtualWorld>;
  requests: number;
}

const PRICES = { m: { input: 1, output: 2, cachedInput: 0.5 } };

function pick<T>(random: Random, ...from: readonly T[]): T {
  return from[Math.floor(random() * from.length)]!;
}

/** A provider that reports to every witness around it, breaks off, refuses, or is slow. */
function createProvider(tree: Tree, around: readonly Witness[], canCall: readonly string[]): Model {
  const { random, faults, world } = tree;
  let turns = 0;
  return {
    name: 'm',
    maxOutputTokens: 200,
    async *stream(_, { signal }): AsyncGenerator<ModelPart> {
      tree.requests++;
      for (const { name, last } of around) {
        if (last === undefined) faults.push(`${name}: a request was sent before anything was reserved`);
        else if (last.spent + last.reserved > last.limit) faults.push(`${name}: a request was sent beyond the limit`);
      }
      const fate = random();
      if (fate < 0.05) throw new ModelError('overloaded', { isRetryable: true, status: 529, retryAfterMs: 1 });
      yield { type: 'usage' };
      const pause = Promise.withResolvers<void>();
      const timer = world.clock.setTimer(Math.floor(random() * 20), pause.resolve);
      signal.addEventListener('abort', () => pause.resolve(), { once: true });
      await pause.promise;
      timer[Symbol.dispose]();
      signal.throwIfAborted();
      if (fate < 0.15) throw new ModelError('connection reset', { isRetryable: true, retryAfterMs: 1 });
      const isLast = ++turns > 6 || canCall.length === 0 || random() < 0.3;
      const width = isLast ? 0 : Math.ceil(random() * 4);
      for (let at = 0; at < width; at++)
        yield { type: 'call-end', callId: `c${turns}-${at}`, tool: pick(random, ...canCall), input: { task: 'go on' } };
      // Now and then more than was reserved.
      const outputTokens = Math.floor(random() * (random() < 0.1 ? 2_000 : 200));
      const inputTokens = Math.floor(random() * 50);
      const cachedInputTokens = Math.floor(random() * inputTokens);
      const cost = Math.ceil(inputTokens - cachedInputTokens + cachedInputTokens / 2 + outputTokens * 2 - 1e-6);
      for (const witness of around) witness.unread += cost;
      yield { type: 'usage', inputTokens, cachedInputTokens, outputTokens };
      yield { type: 'finish', stopReason: 'stop' };
      for (const witness of around) {
        witness.unread -= cost;
        witness.reported += cost;
      }
    },
  };
}

interface Place {
  readonly depth: number;
  readonly around: readonly Witness[];
  readonly name: string;
}

/** Each sub-agent is made anew for its call: its witness belongs to one run. */
function createTree(tree: Tree, { depth, around, name }: Place, witnesses: Witness[]) {
  const { random, world } = tree;
  const isLimited = depth === 0 || random() < 0.3;
  const own: Witness = { name, reported: 0, unread: 0, last: undefined, end: undefined };
  if (isLimited) witnesses.push(own);
  const within = isLimited ? [...around, own] : around;
  const inner: Tool[] = [];
  if (depth < 3)
    for (let at = 0; at < Math.floor(random() * 3); at++)
      inner.push(createNested(tree, { depth: depth + 1, around: within, name: `${name}-${at}` }, witnesses));
  const tools = [tool('look', () => 'seen'), ...inner];
  const usd = Math.ceil(500 + random() * (depth === 0 ? 20_000 : 4_000)) / 1e6;
  const onReached = random() < 0.5 ? ('ask' as const) : ('stop' as const);
  const ask = async (): Promise<{ more: number } | 'no'> => {
    if (random() < 0.5) await Promise.resolve();
    return random() < 0.4 ? 'no' : { more: Math.ceil(random() * 2_000) / 1e6 };
  };
  const agent = createAgent({
    name,
    model: createProvider(
      tree,
      within,
      tools.map((one) => one.name),
    ),
    tools,
    world,
    retry: { backoffMs: 1 },
    budgets: { maxTurns: 12, ...(isLimited && { usd, prices: PRICES, onReached, ask }) },
    hooks: {
      any: (event: { readonly type: string }) => {
        if (event.type === 'spending') own.last = event as unknown as NonNullable<Witness['last']>;
        if (event.type === 'run-end') own.end = (event as RunEvent & { type: 'run-end' }).outcome.spending;
      },
    },
  });
  return { agent, own };
}

function createNested(tree: Tree, place: Place, witnesses: Witness[]): Tool {
  const { agent } = createTree(tree, place, witnesses);
  let runs = 0;
  const made = createAgentTool(agent, { name: place.name, description: 'Goes on' }) as Tool;
  // A witness stands for one run.
  return { ...made, execute: (input, context) => (runs++ === 0 ? made.execute(input, context) : 'done') };
}

/** Runs one history, and returns what was wrong with it. */
export async function runSpendingHistory(
  random: Random,
): Promise<{ readonly faults: readonly string[]; readonly requests: number }> {
  const world = createVirtualWorld();
  const tree: Tree = { random, faults: [], world, requests: 0 };
  const witnesses: Witness[] = [];
  const { agent } = createTree(tree, { depth: 0, around: [], name: 'lead' }, witnesses);
  const run = agent.run('go');
  if (random() < 0.3) {
    const timer = Math.floor(random() * 60);
    world.clock.setTimer(timer, () => run.cancel({ kind: 'user' }, { mode: pick(random, 'graceful', 'now', 'kill') }));
  }
  let isOver = false;
  const ended = run.outcome.then(() => (isOver = true));
  for (let at = 0; at < 4_000 && !isOver; at++) {
    await flushMicrotasks();
    await world.clock.advance(10);
  }
  if (!isOver) tree.faults.push('the run did not end');
  else await ended;
  for (const { name, reported, unread, end, last } of witnesses) {
    if (last === undefined) continue;
    if (end === undefined) tree.faults.push(`${name}: its run has no end`);
    else if (end.reserved !== 0) tree.faults.push(`${name}: ${end.reserved} is still reserved`);
    else {
      const counted = end.spent - end.estimated;
      if (counted < reported || counted > reported + unread)
        tree.faults.push(`${name}: providers reported ${reported} and perhaps ${unread} more, it counted ${counted}`);
    }
  }
  return { faults: tree.faults, requests: tree.requests };
}
