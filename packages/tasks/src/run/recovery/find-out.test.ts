// A worker that takes over a task asks the tools of calls whose end the journal does not have.
import { createAgent, defineTool, type Json, type Tool, type ToolContext } from '@whoa/core';
import { finished, notStarted, stillUnknown } from '@whoa/core/effects';
import { callTools, type Planner, reply } from '@whoa/core/model';
import { createVirtualWorld } from '@whoa/core/testing';
import { expect, test, vi } from 'vitest';
import { z } from 'zod';
import { claimFor, expireSessions } from '../../../../../test/tasks/claimed.ts';
import { createMemoryStore } from '../../ledger/memory.ts';
import { createRunner } from '../store-runner.ts';

const TASK = { tenant: 'acme', agent: 'till', input: 'charge it' };

const CALLS = callTools([{ id: 'c1', tool: 'charge', input: { cents: 5 } }], 'let me');

const before = (intent: Json): Json[] => [
  { type: 'run-start', agent: 'till', input: { role: 'user', content: 'charge it' } },
  { type: 'turn-end', turn: 1, message: CALLS.message } as unknown as Json,
  intent,
];
const INTENT: Json = { type: 'call-intent', callId: 'c1', tool: 'charge', effectKey: 'k-7' };

/** A worker dies after it wrote this; the next one continues. */
async function takeOver(events: readonly Json[], charge: Partial<Tool>) {
  const world = createVirtualWorld();
  const store = createMemoryStore({ world });
  const receipt = await store.create(TASK);
  const id = receipt.result === 'created' ? receipt.task.id : '';
  const claim = await claimFor(store, id, { worker: 'dead', leaseMs: 1_000 });
  await store.append(claim, { after: 0, events });
  await expireSessions(store, world, 1_000);
  let told = '';
  const planner: Planner = {
    next: (history) => {
      told = JSON.stringify(history.slice(2));
      return reply('done');
    },
  };
  const tool = defineTool({
    name: 'charge',
    description: 'Charges a card',
    inputSchema: z.object({ cents: z.number() }),
    effects: 'write',
    execute: () => 'charged again',
    ...(charge as object),
  }) as Tool;
  const agent = createAgent({ name: 'till', planner, tools: [tool], world });
  const runner = createRunner({ store, agents: { till: agent }, world });
  const running = runner.runExisting({ tenant: 'acme', id });
  await world.clock.advance(6_000);
  await running;
  await runner[Symbol.asyncDispose]();
  const entries = await store.read({ tenant: 'acme', id });
  return { told: () => told, events: entries.map(({ event }) => event as { type: string; [field: string]: unknown }) };
}

test('the next worker asks the tool how the call of a lost one ended, with the same key, and tells the model', async () => {
  const findOut = vi.fn(() => finished({ content: 'Charged 5', details: { id: 'ch_1' } }));
  const { told, events } = await takeOver(before(INTENT), { findOut });
  const about = { callId: 'c1', effectKey: 'k-7', startedAt: expect.any(Number) as number };
  expect(findOut.mock.calls).toMatchObject([[{ cents: 5 }, about]]);
  expect(told()).toContain('"content":"Charged 5"');
  expect(told()).not.toContain('It is not known');
  expect(events.filter(({ type }) => type === 'call-end')).toMatchObject([
    { result: { callId: 'c1', state: 'finished', foundOut: { at: expect.any(Number) as number } } },
  ]);
});

test('a call that is proved to have had no effect is not started, and is not repeated', async () => {
  const execute = vi.fn(() => 'charged again');
  const { told } = await takeOver(before(INTENT), { findOut: () => notStarted(), execute });
  expect(told()).toContain('It did not take effect, and cannot any more');
  expect(execute).not.toHaveBeenCalled();
});

test.each<[string, Json, Partial<Tool>]>([
  ['proves nothing', INTENT, { findOut: () => stillUnknown() }],
  ['fails', INTENT, { findOut: () => Promise.reject(new Error('503')) }],
  ['never returns', INTENT, { findOut: () => new Promise(() => {}) }],
  [
    'cannot be asked, because an older release kept no key',
    { type: 'call-intent', callId: 'c1', tool: 'charge' },
    { findOut: () => finished('Charged') },
  ],
])('the call stays unknown if its tool %s', async (_, intent, charge) => {
  const { told } = await takeOver(before(intent), charge);
  expect(told()).toContain('Outcome unknown');
  expect(told()).toContain('It is not known whether these took effect');
});

test('a call that may run again is not asked about, and keeps its key', async () => {
  const findOut = vi.fn(() => finished('Charged'));
  const keys: string[] = [];
  const execute = (_: unknown, { effectKey }: ToolContext): string => String(keys.push(effectKey));
  const { events } = await takeOver(before(INTENT), { findOut, execute, replay: 'safe' });
  expect(keys).toEqual(['k-7']);
  expect(findOut).not.toHaveBeenCalled();
  const intents = events.filter(({ type }) => type === 'call-intent');
  expect(intents.map(({ effectKey }) => effectKey)).toEqual(['k-7', 'k-7']);
});
