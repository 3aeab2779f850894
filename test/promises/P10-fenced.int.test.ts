// P10 Fenced: a result that comes too late, a worker that slept past its lease, an old epoch: none of them changes anything.
import { writeFileSync } from 'node:fs';
import { checkHistory } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { openStore } from '../tasks/open-store.ts';
import { stopBetweenWrites } from '../tasks/stop-process.ts';
import { openScene, until } from './scene.ts';
import { castHere } from './surfaces/run.ts';
import { followTask, MORTAL_LEASE_MS, sharedPlaces, startWorker } from './surfaces/task.ts';

test('a tool that returns after its run has ended changes nothing, and is heard of in the ledger alone', async () => {
  await using scene = await openScene([{ parts: [{ call: 'deaf', id: 'd' }] }]);
  const { agent, recorder, close } = castHere(scene);
  const run = recorder.run(agent.run('go'));
  await scene.started('deaf');
  run.cancel({ message: 'enough' }, { mode: 'kill' });
  const outcome = await run.outcome;
  const before = JSON.stringify(outcome);
  expect(agent.ledger.entries()).toMatchObject([{ name: 'deaf', reason: { message: 'enough' } }]);
  writeFileSync(scene.at('wake-d'), '');
  await until(() => agent.ledger.entries()[0]?.late !== undefined);
  expect(agent.ledger.entries()[0]!.late).toMatchObject({ state: 'finished', value: { content: 'late' } });
  expect(JSON.stringify(outcome)).toBe(before);
  expect(checkHistory(recorder.history)).toEqual([]);
  await close();
});

test.concurrent.each(sharedPlaces())(
  'a worker on $name that slept past its lease wakes to find its task done by another, and changes nothing',
  async (place) => {
    await using scene = await openScene(({ said, results }) => {
      if (results > 0) return undefined;
      // The next worker resumes, and is told what nobody knows any more.
      return said === 'go' ? { parts: [{ text: 'I try. ' }, { call: 'deaf', id: 'd' }] } : undefined;
    });
    const where = await place.open();
    await using store = openStore(where);
    await using sleeper = startWorker(where, scene, { leaseMs: MORTAL_LEASE_MS });
    const receipt = await store.create({ tenant: 'acme', agent: 'cast', input: 'go' });
    const ref = { tenant: 'acme', id: (receipt as { task: { id: string } }).task.id };
    const show = followTask(store, ref, scene);
    await scene.started('deaf');
    await until(async () =>
      (await store.read(ref)).some(({ event }) => (event as { type: string }).type === 'call-start'),
    );
    await stopBetweenWrites(where, sleeper.process);

    await using successor = startWorker(where, scene, { leaseMs: MORTAL_LEASE_MS });
    expect(await show.end()).toMatchObject({ status: 'success', text: 'All done.' });
    const kept = [await store.get(ref), await store.read(ref)];
    writeFileSync(scene.at('wake-d'), '');
    sleeper.process.kill('SIGCONT');
    await until(() => scene.effects().some(({ callId, phase }) => callId === 'd' && phase === 'resolve'));
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
    // It must not be repeated, and was not: what became of it nobody knew, and the model was told so.
    expect(scene.effects().filter(({ callId, phase }) => callId === 'd' && phase === 'begin')).toHaveLength(1);
    expect(JSON.stringify(scene.provider.requests.at(-1)!.body)).toContain('unknown');
    expect(checkHistory(await show.history())).toEqual([]);
  },
);
