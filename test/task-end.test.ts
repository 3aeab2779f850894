// A task leaves its worker in six ways, and only three of them are its end. Everything that an end causes, in all packages,
// waits for those three.
import { type Agent, createAgent, sleep } from '@whoa/core';
import { callTools, type Planner, reply } from '@whoa/core/model';
import { flushMicrotasks } from '@whoa/core/testing';
import { createTelemetry } from '@whoa/server/telemetry';
import { createRunner, createStoreConversations, createTaskApprovals, type RunnerEvent } from '@whoa/tasks';
import { expect, onTestFinished, test } from 'vitest';
import type { RunnerOptions } from '../packages/tasks/src/run/runner.ts';
import { alterStore } from './tasks/altered-store.ts';
import { claimFor, expireSessions } from './tasks/claimed.ts';
import { readFirstId, scripted, setUp, tool } from './tasks/runner-set-up.ts';

type Left = Extract<RunnerEvent, { type: 'task-left' }>['status'];
type Ended = Extract<RunnerEvent, { type: 'task-end' }>['status'];
type Logged = Readonly<Record<Ended | Left, string | undefined>>;

const LEASE_MS = 3_000;
const WAITS: Planner = {
  async next(_, { token }) {
    await sleep(1_000_000, { clock: token.clock, token });
    return reply('late');
  },
};
const PAY = scripted(() => callTools([{ id: 'c1', tool: 'pay', input: {} }]));
const FAILS: Planner = { next: () => Promise.reject(new Error('no model')) };
const PLANNERS: Readonly<Record<Ended | Left, Planner>> = {
  success: scripted(() => reply('done')),
  failed: FAILS,
  cancelled: WAITS,
  released: WAITS,
  parked: PAY,
  lost: WAITS,
};
const END = { success: true, failed: true, cancelled: true } satisfies Readonly<Record<Ended, true>>;
const LOGGED: Logged = {
  success: undefined,
  failed: 'task-failed',
  cancelled: undefined,
  released: undefined,
  parked: undefined,
  lost: 'task-lost',
};

const SERVE = {
  'a runner': (options: RunnerOptions) => createRunner(options),
  'store conversations': ({ agents, hooks, ...options }: RunnerOptions, onReply: () => void) => {
    const agent = agents['assistant'] as Agent;
    return createStoreConversations({ ...options, hooks: hooks as never, tenant: 'acme', agent, onReply });
  },
} as const;

const ROWS = (Object.keys(PLANNERS) as (Ended | Left)[]).flatMap((status) =>
  (Object.keys(SERVE) as (keyof typeof SERVE)[]).map((by) => ({ status, by })),
);

test.each(ROWS)("'$status' of $by causes what an end causes only if it is one", async ({ status, by }) => {
  const { store, world, events, runnerOptions } = setUp({ leaseMs: LEASE_MS });
  const approvals = createTaskApprovals({ parkAfterMs: 0 });
  const pay = tool('pay', () => 'paid', { effects: 'write' });
  const agent = createAgent({
    name: 'assistant',
    planner: PLANNERS[status],
    tools: [pay],
    world,
    approve: approvals.approve,
  });
  let isFrozen = false;
  const frozen = alterStore(store, (name, call) =>
    isFrozen && (name === 'heartbeat' || name === 'take') ? Promise.reject(new Error('no route')) : call(),
  );
  const logs: string[] = [];
  const telemetry = createTelemetry({ world, onLog: ({ event }) => logs.push(event) });
  onTestFinished(() => telemetry[Symbol.asyncDispose]());
  const replies: string[] = [];
  const named: string[] = [];
  const { hooks } = runnerOptions;
  const options = telemetry.observe({
    ...runnerOptions,
    store: frozen,
    agents: { assistant: agent },
    approvals,
    hooks: {
      ...hooks,
      'task-end': (event) => named.push(`${event.type} ${event.status}`),
      'task-left': (event) => named.push(`${event.type} ${event.status}`),
    },
  });
  const worker = SERVE[by](options, () => replies.push(status));
  await store.create({ tenant: 'acme', agent: 'assistant', input: 'go', conversation: 'c', key: 'm1' });
  await worker.serve();
  await flushMicrotasks();
  const id = await readFirstId(store);
  if (status === 'cancelled') await store.cancel({ tenant: 'acme', id }, { kind: 'user' }, { mode: 'kill' });
  if (status === 'released') await worker[Symbol.asyncDispose]();
  if (status === 'lost') {
    isFrozen = true;
    await world.clock.advance(LEASE_MS - 1_001);
    await expireSessions(store, world, LEASE_MS);
    await claimFor(store, id, { worker: 'thief' });
    isFrozen = false;
    await world.clock.advance(LEASE_MS);
  }
  await world.clock.advance(10_000);
  await flushMicrotasks();
  const isEnd = status in END;
  const wanted = [`${isEnd ? 'task-end' : 'task-left'} ${status}`];
  expect(named).toEqual(wanted);
  const heard = events.filter((event) => event.type === 'task-end' || event.type === 'task-left');
  expect(heard.map((event) => `${event.type} ${event.status}`)).toEqual(wanted);
  expect(logs.filter((event) => event.startsWith('task-'))).toEqual([LOGGED[status]].filter(Boolean));
  expect(replies).toEqual(isEnd && by === 'store conversations' ? [status] : []);
  await worker[Symbol.asyncDispose]();
  expect(named).toEqual(wanted);
});
