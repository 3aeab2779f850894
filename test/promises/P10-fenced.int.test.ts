// P10 Fenced: a result that arrives too late, a worker that slept past its lease and an old epoch change nothing.
import { writeFileSync } from 'node:fs';
import { checkHistory } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { openStore } from '../tasks/open-store.ts';
import { stopBetweenWrites } from '../tasks/stop-process.ts';
import { openFixture, until } from './fixture.ts';
import { createLocalAgent } from './surfaces/run.ts';
import { EVERY_STORE, followTask, MORTAL_LEASE_MS, sharedStores, startWorker } from './surfaces/task.ts';

test('a tool that returns after its run has ended changes nothing, and is only in the late results', async () => {
  await using fixture = await openFixture([{ parts: [{ call: 'deaf', id: 'd' }] }]);
  const { agent, recorder, close } = createLocalAgent(fixture);
  const run = recorder.run(agent.run('go'));
  await fixture.started('deaf');
  run.cancel({ message: 'enough' }, { mode: 'kill' });
  const outcome = await run.outcome;
  const before = JSON.stringify(outcome);
  expect(agent.lateResults.entries()).toMatchObject([{ name: 'deaf', reason: { message: 'enough' } }]);
  writeFileSync(fixture.at('wake-d'), '');
  await until(() => agent.lateResults.entries()[0]?.late !== undefined);
  expect(agent.lateResults.entries()[0]!.late).toMatchObject({ state: 'finished', value: { content: 'late' } });
  expect(JSON.stringify(outcome)).toBe(before);
  expect(checkHistory(recorder.history)).toEqual([]);
  await close();
});

test.concurrent.each(sharedStores(EVERY_STORE))(
  'a worker on $name that slept past its lease wakes to find its task done by another, and changes nothing',
  async (location) => {
    await using fixture = await openFixture(({ said, results }) => {
      if (results > 0) return undefined;
      // The next worker resumes, and its model sees what is unknown.
      return said === 'go' ? { parts: [{ text: 'I try. ' }, { call: 'deaf', id: 'd' }] } : undefined;
    });
    const where = await location.open();
    await using store = openStore(where);
    await using sleeper = startWorker(where, fixture, { leaseMs: MORTAL_LEASE_MS });
    const receipt = await store.create({ tenant: 'acme', agent: 'tester', input: 'go' });
    const ref = { tenant: 'acme', id: (receipt as { task: { id: string } }).task.id };
    const prompt = followTask(store, ref, fixture);
    await fixture.started('deaf');
    await until(async () =>
      (await store.read(ref)).some(({ event }) => (event as { type: string }).type === 'call-start'),
    );
    await stopBetweenWrites(where, sleeper.process);

    await using successor = startWorker(where, fixture, { leaseMs: MORTAL_LEASE_MS });
    expect(await prompt.end()).toMatchObject({ status: 'success', text: 'All done.' });
    const kept = [await store.get(ref), await store.read(ref)];
    writeFileSync(fixture.at('wake-d'), '');
    sleeper.process.kill('SIGCONT');
    await until(() => fixture.effects().some(({ callId, phase }) => callId === 'd' && phase === 'resolve'));
    for (const epoch of [1, 2]) {
      const forged = { id: ref.id, epoch, session: 'forged', claim: 'forged' };
      const accepted = await store.append(forged, { after: 0, events: [{ type: 'forged' }] }).then(
        () => true,
        () => false,
      );
      expect(accepted).toBe(false);
    }
    for (const worker of [sleeper, successor]) worker.process.send('stop');
    expect(await Promise.all([sleeper.ended, successor.ended])).toEqual([0, 0]);
    expect([await store.get(ref), await store.read(ref)]).toEqual(kept);
    // It must not be repeated, and was not: its result was unknown, and the model saw that.
    expect(fixture.effects().filter(({ callId, phase }) => callId === 'd' && phase === 'begin')).toHaveLength(1);
    expect(JSON.stringify(fixture.provider.requests.at(-1)!.body)).toContain('unknown');
    expect(checkHistory(await prompt.history())).toEqual([]);
  },
);
