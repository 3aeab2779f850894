// P5 Nothing lost: what anybody was shown before the end is in the outcome, in order, without gaps or repeats; what was
// written down survives a worker that is killed.
import { existsSync } from 'node:fs';
import { toText } from '@whoa/core';
import { checkHistory } from '@whoa/core/testing';
import { describe, expect, test } from 'vitest';
import { openStore } from '../tasks/open-store.ts';
import { openFixture, until } from './fixture.ts';
import { everySurface } from './surfaces/all.ts';
import { followTask, MORTAL_LEASE_MS, sharedStores, startWorker } from './surfaces/task.ts';

const STORY = ['Once ', 'upon ', 'a ', 'time '];

describe.concurrent.each(everySurface())('$name', (surface) => {
  test('keeps the words that were shown before it was cut off', async () => {
    await using fixture = await openFixture([{ parts: [{ text: [...STORY, { stall: true }, 'there was'] }] }]);
    await using stage = await surface.open(fixture);
    const show = await stage.start('tell me');
    await until(async () => (await show.shown()) === STORY.join(''));
    await show.cancel({ message: 'enough' }, { mode: 'now' });
    expect(await show.end()).toMatchObject({ status: 'cancelled', text: STORY.join('') });
    expect(checkHistory(await show.history())).toEqual([]);
  });
});

describe.concurrent.each(everySurface(['SQLite']))('$name', (surface) => {
  test('keeps what a command had printed and what finished beside it', async () => {
    const command = 'for i in 1 2 3; do echo line $i; done; touch printed; sleep 300';
    await using fixture = await openFixture([
      {
        parts: [
          { call: 'look', id: 'l' },
          { call: 'bash', id: 'b', input: { command } },
        ],
      },
    ]);
    await using stage = await surface.open(fixture);
    const show = await stage.start('go');
    await fixture.started('bash');
    await until(() => fixture.effects().some(({ tool, phase }) => tool === 'look' && phase === 'resolve'));
    await until(() => existsSync(fixture.at('printed')));
    await show.cancel({ message: 'enough' }, { mode: 'now' });
    const { calls } = await show.end();
    const said = Object.fromEntries(calls.map(({ callId, state, content }) => [callId, [state, toText(content)]]));
    expect(said['l']).toEqual(['finished', 'found']);
    expect(said['b']?.[0]).toBe('interrupted');
    expect(said['b']?.[1]).toContain('line 1\nline 2\nline 3');
  });
});

test.concurrent.each(sharedStores())(
  'what a reader saw of a task on $name is there after its worker was killed',
  async (location) => {
    await using fixture = await openFixture([{ parts: [{ text: [...STORY, { stall: true }] }] }]);
    const where = await location.open();
    await using store = openStore(where);
    await using doomed = startWorker(where, fixture, { leaseMs: MORTAL_LEASE_MS });
    const receipt = await store.create({ tenant: 'acme', agent: 'tester', input: 'tell me' });
    const show = followTask(store, { tenant: 'acme', id: (receipt as { task: { id: string } }).task.id }, fixture);
    await until(async () => (await show.shown()) === STORY.join(''));
    doomed.process.kill('SIGKILL');
    await doomed.ended;
    expect(await show.shown()).toBe(STORY.join(''));
    await show.cancel({ message: 'enough' });
    await using next = startWorker(where, fixture);
    expect(await show.end()).toMatchObject({ status: 'cancelled', text: STORY.join('') });
    expect(checkHistory(await show.history())).toEqual([]);
    next.process.send('stop');
    await next.ended;
  },
);
