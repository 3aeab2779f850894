// P8 Right target only: a cancel stops its target and everything under it, but not other runs of the same worker, the
// next prompt on the same surface, or another tenant's work of the same name.
import { checkHistory } from '@whoa/core/testing';
import { describe, expect, test } from 'vitest';
import { openStore } from '../tasks/open-store.ts';
import { DONE, type Fixture, openFixture } from './fixture.ts';
import { everySurface } from './surfaces/all.ts';
import { createLocalAgent } from './surfaces/run.ts';
import { followTask, sharedStores, startWorker } from './surfaces/task.ts';

/** Two kinds of work: one waits for ever, the other pays and ends. */
const openTwo = (): Promise<Fixture> =>
  openFixture(({ said, results }) => {
    if (results > 0) return undefined;
    return said.includes('wait')
      ? { parts: [{ call: 'wait', id: `w-${said.length}` }] }
      : { parts: [{ call: 'pay', id: `p-${said.length}` }] };
  });

describe.concurrent.each(everySurface(['SQLite']))('$name', (surface) => {
  test('the next prompt works, and the cancel before it does not reach it', async () => {
    await using fixture = await openTwo();
    await using harness = await surface.open(fixture);
    const first = await harness.start('wait');
    await fixture.started('wait');
    await first.cancel({ message: 'not this' }, { mode: 'now' });
    expect(await first.end()).toMatchObject({ status: 'cancelled' });
    const second = await harness.start('pay');
    expect(await second.end()).toMatchObject({ status: 'success', text: DONE });
    // A late command for the one that ended does not reach the one that runs.
    expect(checkHistory(await second.history())).toEqual([]);
  });
});

test('a cancel of one run leaves its sisters under the same agent, token and shell alone', async () => {
  await using fixture = await openTwo();
  const { agent, recorder, close } = createLocalAgent(fixture);
  const runs = ['wait', 'pay.', 'wait..', 'pay...'].map((said) => recorder.run(agent.run(said)));
  await fixture.started('wait', 2);
  runs[0]!.cancel({ message: 'only this' }, { mode: 'kill' });
  expect((await runs[0]!.outcome).status).toBe('cancelled');
  expect((await Promise.all([runs[1]!.outcome, runs[3]!.outcome])).map(({ status }) => status)).toEqual([
    'success',
    'success',
  ]);
  runs[2]!.cancel({ message: 'and this' }, { mode: 'now' });
  expect(await runs[2]!.outcome).toMatchObject({ reason: { message: 'and this' } });
  expect(checkHistory(recorder.history)).toEqual([]);
  await close();
});

test.concurrent.each(sharedStores())(
  'a cancel on $name stops one task of its worker, and nothing of another tenant',
  async (location) => {
    await using fixture = await openTwo();
    const where = await location.open();
    await using store = openStore(where);
    await using worker = startWorker(where, fixture);
    const create = async (tenant: string, input: string) => {
      const receipt = await store.create({
        tenant,
        agent: 'tester',
        input,
        conversation: `${fixture.mark}.${input}`,
        key: 'one',
      });
      return followTask(store, { tenant, id: (receipt as { task: { id: string } }).task.id }, fixture);
    };
    const [mine, theirs] = [await create('acme', 'wait'), await create('other', 'wait..')];
    await fixture.started('wait', 2);
    const other = await create('acme', 'pay');
    expect(
      await store.cancel(
        { tenant: 'acme', conversation: `${fixture.mark}.wait` },
        { message: 'only this' },
        { mode: 'now' },
      ),
    ).toMatchObject({
      result: 'accepted',
    });
    expect(await store.cancel({ tenant: 'acme', conversation: `${fixture.mark}.wait..` })).toEqual({
      result: 'not-found',
    });
    expect(await mine.end()).toMatchObject({ status: 'cancelled' });
    expect(await other.end()).toMatchObject({ status: 'success', text: DONE });
    expect(await theirs.read()).toMatchObject({ status: 'running' });
    await theirs.cancel({ message: 'the owner' }, { mode: 'now' });
    expect(await theirs.end()).toMatchObject({ status: 'cancelled', reason: { message: 'the owner' } });
    for (const prompt of [mine, other, theirs]) expect(checkHistory(await prompt.history())).toEqual([]);
    worker.process.send('stop');
    await worker.ended;
  },
);
