import { createVirtualWorld } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { createMemoryStore } from '../memory.ts';

const TAKE = {
  session: 's1',
  worker: 'w1',
  leaseMs: 1_000,
  takeNumber: 1,
  agents: ['a'],
  limit: 5,
  claim: 'c1',
};

test('a task that is due together with the message that replaces it has ended, and is not taken', async () => {
  const world = createVirtualWorld();
  const store = createMemoryStore({ world });
  const of = { tenant: 'acme', agent: 'a', conversation: 'chat' };
  const first = await store.create({ ...of, input: 'one', notBefore: world.clock.now() + 2_000 });
  const second = await store.create({ ...of, input: 'two', debounceMs: 1_000 }, { policy: 'replace' });
  expect([first, second]).toMatchObject([{ task: { stage: 'delayed' } }, { task: { stage: 'delayed' } }]);
  await world.clock.advance(5_000);
  const taken = await store.take(TAKE);
  const [one, two] = [first, second].map((receipt) => (receipt as { task: { id: string } }).task.id);
  expect(taken).toMatchObject({ tasks: [{ task: { id: two, superseded: [one] } }] });
  expect(await store.get({ tenant: 'acme', id: one! })).toMatchObject({
    status: 'cancelled',
    outcome: { reason: { kind: 'superseded' } },
  });
});
