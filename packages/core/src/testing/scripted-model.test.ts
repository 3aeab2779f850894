import { expect, test } from 'vitest';
import { createAgent } from '../run/agent.ts';
import { createScriptedModel } from './scripted-model.ts';
import { createVirtualWorld, flushMicrotasks } from './virtual-world.ts';

test.each([() => [['hi']], ['hi'], 'hi', undefined])(
  'a script that is not a list of replies is rejected: %o',
  (script) => {
    expect(() => createScriptedModel(script as never)).toThrow(/^replies(?:\[0\])?: expected a list/);
  },
);

test.each([
  ['a pause', [['Once ', { waitMs: 60_000 }, 'more']], 0],
  ['a word', [['Once more']], 60_000],
] as const)('a reply that is cancelled during %s leaves no timer behind', async (_, replies, wordMs) => {
  const world = createVirtualWorld();
  const model = createScriptedModel(replies, { clock: world.clock, wordMs });
  const run = createAgent({ name: 'teller', model, world }).run('Tell me');
  await flushMicrotasks();
  expect(world.clock.pending).toBeGreaterThan(0);
  run.cancel({ kind: 'user' });
  await expect(run.outcome).resolves.toMatchObject({ status: 'cancelled' });
  await flushMicrotasks();
  expect({ timers: world.clock.pending, streams: model.open }).toEqual({ timers: 0, streams: 0 });
});
