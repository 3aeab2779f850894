import { createVirtualWorld } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { createMemoryStore } from '../../stores/memory.ts';
import { DomainSession } from './domain-session.ts';

const LEASE_MS = 3_000;

test('a task whose session ends between its claim and its work is lost at once', async () => {
  const world = createVirtualWorld();
  await using store = createMemoryStore({ world });
  const fail = (error: unknown): never => {
    throw error;
  };
  const sessionOf = (worker: string): DomainSession =>
    new DomainSession({
      store,
      domain: 0,
      worker,
      leaseMs: LEASE_MS,
      world,
      onStoreError: fail,
      onExpired: () => {},
      background: (work) => void work.catch(fail),
    });
  const [session, neighbour] = [sessionOf('w1'), sessionOf('w2')];
  await store.create({ tenant: 'acme', agent: 'assistant', input: 'hello' });
  const answer = await session.take(['assistant'], 1);
  if (answer.answer !== 'taken') throw new Error(`the store answered ${answer.answer}`);
  const [{ claim } = expect.fail('nothing was taken')] = answer.tasks;
  // A store that nobody asks anything does not let sessions run out.
  for (let second = 0; second < 4; second++) {
    await world.clock.advance(1_000);
    await neighbour.take(['nobody'], 1);
  }
  await store.sweep({ domain: 0 });
  expect(await session.take(['assistant'], 1)).toEqual({ answer: 'gone' });

  const lost: string[] = [];
  session.hold({ claim, obey: () => {}, fence: () => {}, lose: (error) => void lost.push(error.code) });
  expect(lost).toEqual(['LEASE_LOST']);
});
