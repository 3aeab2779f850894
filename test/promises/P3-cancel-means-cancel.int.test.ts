// P3 Cancel means cancel: a cancel's receipt is true. After `accepted` no task ends in success, whenever the cancel
// came: before the start, in the same tick, twice, in a race with the end, or after it.
import { checkHistory } from '@whoa/core/testing';
import { describe, expect, test } from 'vitest';
import { openStore } from '../tasks/open-store.ts';
import { openFixture, until } from './fixture.ts';
import { everySurface } from './surfaces/all.ts';
import { createLocalAgent } from './surfaces/run.ts';
import { EVERY_STORE, followTask, sharedStores, startWorker } from './surfaces/task.ts';

describe.concurrent.each(everySurface(EVERY_STORE))('$name', (surface) => {
  test('answers a first cancel, a harder one and one after the end truthfully', async () => {
    await using fixture = await openFixture([{ parts: [{ call: 'deaf', id: 'd' }] }]);
    await using harness = await surface.open(fixture);
    const prompt = await harness.start('go');
    await fixture.started('deaf');
    const first = await prompt.cancel({ message: 'first' }, { mode: 'graceful' });
    const harder = await prompt.cancel({ message: 'second' }, { mode: 'kill' });
    const end = await prompt.end();
    const late = await prompt.cancel({ message: 'third' }, { mode: 'kill' });
    expect(end.status).toBe('cancelled');
    // An editor gets nothing but the end.
    if (first.result !== 'sent') {
      expect([first.result, harder.result, late.result]).toEqual(['accepted', 'escalated', 'too-late']);
      expect([first.reason?.message, harder.reason?.message]).toEqual(['first', 'first']);
      expect(end.reason).toEqual(first.reason);
      if ('status' in late) expect(late.status).toBe('cancelled');
    }
    expect(checkHistory(await prompt.history())).toEqual([]);
  });
});

test('a run that is cancelled in the tick that started it asks no model and calls no tool', async () => {
  await using fixture = await openFixture([{ parts: [{ call: 'look', id: 'l' }] }]);
  const { agent, recorder, close } = createLocalAgent(fixture);
  const run = recorder.run(agent.run('go'));
  expect(run.cancel({ message: 'at once' }).result).toBe('accepted');
  expect(await run.outcome).toMatchObject({ status: 'cancelled', turns: 0, calls: [], text: '' });
  expect(fixture.provider.requests).toEqual([]);
  expect(fixture.effects()).toEqual([]);
  expect(checkHistory(recorder.history)).toEqual([]);
  await close();
});

test.concurrent.each(sharedStores(EVERY_STORE))(
  'on $name a task that is cancelled before a worker took it never starts',
  async (location) => {
    await using fixture = await openFixture([{ parts: [{ call: 'look', id: 'l' }] }]);
    const where = await location.open();
    await using store = openStore(where);
    const receipt = await store.create({ tenant: 'acme', agent: 'tester', input: 'go' });
    const prompt = followTask(store, { tenant: 'acme', id: (receipt as { task: { id: string } }).task.id }, fixture);
    expect(await prompt.cancel({ message: 'never mind' })).toMatchObject({ result: 'accepted', status: 'cancelled' });
    await using worker = startWorker(where, fixture);
    await worker.hear<{ type: string }>(({ type }) => type === 'serving');
    // One after it, so that we know the worker has looked.
    const next = await store.create({ tenant: 'acme', agent: 'tester', input: 'then' });
    await followTask(store, { tenant: 'acme', id: (next as { task: { id: string } }).task.id }, fixture).end();
    expect(fixture.effects().filter(({ phase }) => phase === 'begin')).toHaveLength(1);
    expect(await prompt.read()).toMatchObject({ status: 'cancelled', calls: [], reason: { message: 'never mind' } });
    worker.process.send('stop');
    await worker.ended;
  },
);

const RACES = 24;

test.concurrent.each(sharedStores(EVERY_STORE))(
  'on $name a cancel that races the end of a task is either accepted or too late, and the end agrees',
  async (location) => {
    await using fixture = await openFixture();
    const where = await location.open();
    await using store = openStore(where);
    await using worker = startWorker(where, fixture);
    await worker.hear<{ type: string }>(({ type }) => type === 'serving');
    const answers = new Map<string, number>();
    await Promise.all(
      Array.from({ length: RACES }, async (_, i) => {
        const receipt = await store.create({ tenant: 'acme', agent: 'tester', input: `race ${i}.` });
        const prompt = followTask(
          store,
          { tenant: 'acme', id: (receipt as { task: { id: string } }).task.id },
          fixture,
        );
        // Every third before the start; the others when the model is called, each a little later than the one before.
        if (i % 3 > 0)
          await until(() => fixture.provider.requests.some(({ body }) => JSON.stringify(body).includes(`race ${i}.`)));
        for (let looks = 0; looks < i; looks++) await prompt.readText();
        const [one, two] = await Promise.all([prompt.cancel({ message: 'one' }), prompt.cancel({ message: 'two' })]);
        const { status } = await prompt.end();
        const isCancelled = [one, two].some(({ result }) => result === 'accepted');
        expect(status === 'cancelled').toBe(isCancelled);
        expect(checkHistory(await prompt.history())).toEqual([]);
        answers.set(one.result, (answers.get(one.result) ?? 0) + 1);
      }),
    );
    console.log(location.name, Object.fromEntries(answers));
    worker.process.send('stop');
    await worker.ended;
  },
);
