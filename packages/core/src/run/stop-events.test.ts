import { expect, test } from 'vitest';
import { createVirtualWorld, flushMicrotasks } from '../testing/virtual-world.ts';
import { createAgent } from './agent.ts';
import { reply } from './reply/planner.ts';
import type { RunEvent } from './report/events.ts';
import type { Run } from './run.ts';

const told = (events: readonly RunEvent[]) =>
  events.flatMap((event) => {
    if (event.type === 'cancel-requested') return [`${event.receipt} ${event.reason.message}`];
    return event.type === 'level-changed' ? [event.level] : event.type === 'run-end' ? ['end'] : [];
  });

test('a hook that cancels harder on a cancel event: each receipt is reported once, and levels rise', async () => {
  const world = createVirtualWorld();
  const heard: RunEvent[] = [];
  const streamed: RunEvent[] = [];
  const run: Run = createAgent({
    name: 'a',
    planner: { next: () => new Promise(() => {}) },
    world,
    hooks: {
      'cancel-requested': ({ receipt }) => receipt === 'accepted' && run.cancel('harder', { mode: 'kill' }),
    },
  }).run('x', { hooks: { any: (event) => heard.push(event) } });
  await flushMicrotasks();
  run.cancel('enough');
  const outcome = await run.outcome;
  for await (const event of run.events) streamed.push(event);
  expect(told(streamed)).toEqual(['accepted enough', 'escalated harder', 'drain', 'kill', 'end']);
  expect(told(heard).toSorted()).toEqual(told(streamed).toSorted());
  expect(outcome).toMatchObject({ status: 'cancelled', stop: { levels: [{ level: 'drain' }, { level: 'kill' }] } });
});

test('a cancel in a hook for the end is too late, and adds no event', async () => {
  const answers: string[] = [];
  const heard: RunEvent[] = [];
  const run: Run = createAgent({
    name: 'a',
    planner: { next: () => reply('done') },
    hooks: { 'run-end': () => answers.push(run.cancel('late').result) },
  }).run('x', { hooks: { any: (event) => heard.push(event) } });
  expect((await run.outcome).status).toBe('success');
  const streamed: RunEvent[] = [];
  for await (const event of run.events) streamed.push(event);
  expect(answers).toEqual(['too-late']);
  expect([told(streamed), told(heard)]).toEqual([['end'], ['end']]);
});
