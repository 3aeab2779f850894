// A worker of a task with sub-agents dies at each of its writes, and another worker continues.
import { createAgent, createAgentTool, type StopReport, type Tool } from '@whoa/core';
import { callTools, reply } from '@whoa/core/model';
import { createVirtualWorld, flushMicrotasks } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { alterStore } from '../../../../../test/tasks/altered-store.ts';
import { expireSessions } from '../../../../../test/tasks/claimed.ts';
import { scripted, setUp, TASK, tool } from '../../../../../test/tasks/runner-set-up.ts';
import { createMemoryStore } from '../../ledger/memory.ts';
import type { TaskStore } from '../../store.ts';
import { createTaskApprovals } from '../questions/approvals.ts';

const LEASE_MS = 10_000;

interface Office {
  readonly store: TaskStore;
  readonly world: ReturnType<typeof createVirtualWorld>;
  /** What happened to the world: payments and refunds, by call. */
  readonly effects: string[];
  readonly isAsking: boolean;
  /** The worker dies when it would write for the nth time. */
  readonly diesAt?: number;
  /** It is shut down then, in order. */
  readonly isDeploy?: boolean;
}

/** A worker whose agent has agents three deep: each pays once, the middle one before and after the innermost. */
function openOffice({ store, world, effects, isAsking, diesAt = Infinity, isDeploy = false }: Office) {
  let writes = 0;
  const deploys: PromiseLike<void>[] = [];
  const isDead = (): boolean => !isDeploy && writes >= diesAt;
  const own = alterStore(store, (name, call) => {
    if (name === 'append' && !isDead()) writes++;
    if (isDeploy && writes === diesAt) deploys.push(made.runner[Symbol.asyncDispose]());
    return isDead() ? new Promise(() => {}) : call();
  });
  const pay = (name: string): Tool =>
    tool(
      name,
      async () => {
        if (isDead()) return new Promise(() => {});
        effects.push(name);
        await Promise.resolve();
        return `${name} is paid`;
      },
      { effects: 'write', undo: () => void effects.push(`undo ${name}`) },
    );
  const approvals = createTaskApprovals({
    parkAfterMs: 0,
    decide: ({ tool: { name } }) => ({ decision: isAsking && name.startsWith('pay') ? 'ask' : 'allow' }),
  });
  const { approve } = approvals;
  const inner = createAgent({
    name: 'inner',
    tools: [pay('pay-inner')],
    planner: scripted(
      () => callTools([{ id: 'c', tool: 'pay-inner', input: {} }]),
      () => reply('inner done'),
    ),
    world,
  });
  const middle = createAgent({
    name: 'middle',
    tools: [pay('pay-first'), pay('pay-beside'), pay('pay-last'), createAgentTool(inner, { description: 'inner' })],
    planner: scripted(
      () =>
        callTools([
          { id: 'c', tool: 'pay-first', input: {} },
          { id: 'd', tool: 'pay-beside', input: {} },
        ]),
      () => callTools([{ id: 'e', tool: 'inner', input: { task: 'pay' } }]),
      () => callTools([{ id: 'f', tool: 'pay-last', input: {} }]),
      () => reply('middle done'),
    ),
    world,
  });
  const planner = scripted(
    () => callTools([{ id: 'c', tool: 'middle', input: { task: 'pay' } }]),
    () => callTools([{ id: 'd', tool: 'pay-boss', input: {} }]),
    () => reply('all done'),
  );
  const tools = [createAgentTool(middle, { description: 'middle' }), pay('pay-boss')];
  const agent = createAgent({ name: 'assistant', planner, tools, world, approve });
  const made = setUp({ work: agent, memory: own, world, approvals, leaseMs: LEASE_MS });
  return { ...made, writes: () => writes };
}

const PAYMENTS = ['pay-beside', 'pay-boss', 'pay-first', 'pay-inner', 'pay-last'];

/** Answers every question with yes until nothing changes. */
async function settle(store: TaskStore, world: Office['world'], look?: () => Promise<void>): Promise<void> {
  for (let quiet = 0; quiet < 4; quiet++) {
    await flushMicrotasks();
    await world.clock.advance(600);
    await look?.();
    const { questions } = await store.questions({ tenant: 'acme' });
    for (const { id } of questions) {
      await store.answer({ tenant: 'acme', id }, { value: { decision: 'yes' }, by: 'ann' });
      quiet = 0;
    }
  }
}

interface Deaths {
  readonly isAsking: boolean;
  /** At which write each worker dies. */
  readonly at: readonly number[];
  readonly isDeploy?: boolean;
  /** Called before the last worker comes. */
  readonly meanwhile?: (store: TaskStore, id: string) => Promise<void>;
}

/** Lets workers die one after another, then one that does not. */
async function runWithDeaths({ isAsking, at, isDeploy = false, meanwhile }: Deaths) {
  const world = createVirtualWorld();
  const store = createMemoryStore({ world });
  const effects: string[] = [];
  const created = await store.create(TASK);
  const { id } = (created as { task: { id: string } }).task;
  let writes = 0;
  let wasParked = false;
  for (const diesAt of at) {
    const office = openOffice({ store, world, effects, isAsking, diesAt, isDeploy });
    await office.runner.serve();
    await settle(store, world, async () => {
      wasParked ||= (await store.get({ tenant: 'acme', id }))?.stage === 'parked';
    });
    await expireSessions(store, world, LEASE_MS);
    writes = office.writes();
  }
  const before = [...effects];
  await meanwhile?.(store, id);
  const last = openOffice({ store, world, effects, isAsking });
  await last.runner.serve();
  await expireSessions(store, world, LEASE_MS);
  await settle(store, world);
  await last.runner[Symbol.asyncDispose]();
  const record = (await store.get({ tenant: 'acme', id }))!;
  const journal = JSON.stringify(await store.read({ tenant: 'acme', id }, { limit: 1_000 }));
  const unknown = PAYMENTS.filter((name) => journal.includes(`"tool":"${name}","state":"unknown"`));
  return { before, effects, record, unknown, writes, wasParked };
}

const KINDS = [
  ['without questions', false],
  ['with a question for each payment', true],
] as const;

test.each(KINDS)(
  'no call of a sub-agent runs twice or is lost when workers die at any write: %s',
  async (_, isAsking) => {
    const whole = await runWithDeaths({ isAsking, at: [Infinity] });
    expect(whole).toMatchObject({ record: { status: 'success', outcome: { answer: 'all done' } }, unknown: [] });
    expect(whole.effects.toSorted()).toEqual(PAYMENTS);
    // A question of a sub-agent takes no slot.
    expect(whole.wasParked).toBe(isAsking);
    for (let first = 1; first <= whole.writes; first++) {
      for (const second of [[], [2]]) {
        const { effects, record, unknown } = await runWithDeaths({ isAsking, at: [first, ...second] });
        const where = `dies at ${first} of ${whole.writes}, then ${second.join()}`;
        expect(record, where).toMatchObject({ status: 'success', outcome: { answer: 'all done' } });
        expect(new Set(effects).size, where).toBe(effects.length);
        // What had begun without an end may be unknown: then it is not repeated.
        expect(new Set([...effects, ...unknown]), where).toEqual(new Set(PAYMENTS));
      }
    }
  },
);

test.each(KINDS)('a deploy interrupts no call of a sub-agent, and loses no question: %s', async (_, isAsking) => {
  const { writes } = await runWithDeaths({ isAsking, at: [Infinity] });
  for (let at = 1; at <= writes; at++) {
    const { effects, record, unknown } = await runWithDeaths({ isAsking, at: [at, at], isDeploy: true });
    const where = `deployed at ${at} of ${writes}`;
    expect(record, where).toMatchObject({ status: 'success', outcome: { answer: 'all done' } });
    expect([effects.toSorted(), unknown], where).toEqual([PAYMENTS, []]);
  }
});

test.each(KINDS)(
  'a cancel with undo after a crash undoes or names everything in sub-agents: %s',
  async (_, isAsking) => {
    const { writes } = await runWithDeaths({ isAsking, at: [Infinity] });
    const meanwhile = async (store: TaskStore, id: string): Promise<void> => {
      await store.cancel({ tenant: 'acme', id }, { by: 'ann' }, { undo: true });
    };
    for (let at = 1; at <= writes; at++) {
      const { before, effects, record } = await runWithDeaths({ isAsking, at: [at], meanwhile });
      const where = `dies at ${at} of ${writes}`;
      if (record.status === 'success') continue;
      expect(record.status, where).toBe('cancelled');
      const report = record.outcome!.stopReport as unknown as StopReport;
      for (const name of before) {
        const reported = report.calls.find(({ tool: used }) => used.split(' › ').at(-1) === name);
        const isNamed = effects.includes(`undo ${name}`) || reported?.state === 'unknown';
        expect(isNamed, `${where}: ${name}, ${JSON.stringify(report.calls)}`).toBe(true);
      }
      expect(new Set(effects).size, where).toBe(effects.length);
    }
  },
);

test('agents are at most eight deep inside each other', () => {
  let agent = createAgent({ name: 'a0', planner: scripted(() => reply('hi')) });
  const wrap = (): void => {
    const tools = [createAgentTool(agent, { description: 'inner' })];
    agent = createAgent({ name: 'outer', planner: scripted(() => reply('hi')), tools });
  };
  for (let depth = 1; depth <= 8; depth++) wrap();
  expect(wrap).toThrow('at most 8 deep');
});
