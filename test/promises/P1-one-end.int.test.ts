// P1 One end: no matter what happens to it, a task ends once, and its record never changes afterwards: not by later
// cancels, not by its own worker, not by another process, not by a restart.
import { checkHistory } from '@whoa/core/testing';
import { describe, expect, test } from 'vitest';
import { startPostgres } from '../servers/postgres.ts';
import { temporaryFolder } from '../tasks/child.ts';
import { openStore } from '../tasks/open-store.ts';
import { openFixture } from './fixture.ts';
import { everySurface } from './surfaces/all.ts';
import { createLocalAgent } from './surfaces/run.ts';

describe.concurrent.each(everySurface())('$name', (surface) => {
  test('work that is cancelled from everywhere at the same time ends once, and stays as it ended', async () => {
    await using fixture = await openFixture([{ parts: [{ text: 'I wait. ' }, { call: 'wait', id: 'w' }] }]);
    await using harness = await surface.open(fixture);
    const prompt = await harness.start('go');
    await fixture.started('wait');
    await Promise.all([1, 2, 3].map((n) => prompt.cancel({ message: `cancel ${n}` }, { mode: 'now' })));
    const end = await prompt.end();
    expect(end).toMatchObject({
      status: 'cancelled',
      text: 'I wait. ',
      calls: [{ callId: 'w', state: 'interrupted' }],
    });
    await prompt.cancel({ message: 'once more' }, { mode: 'kill', undo: true });
    expect(await prompt.read()).toEqual(end);
    expect(checkHistory(await prompt.history())).toEqual([]);
  });
});

test('the outcome of a run is announced once, and its receivers cannot change it', async () => {
  await using fixture = await openFixture();
  const { agent, recorder, close } = createLocalAgent(fixture);
  const run = agent.run('go');
  const outcome = await run.outcome;
  const before = JSON.stringify(outcome);
  expect(() => Object.assign(outcome, { status: 'failed' })).toThrow(TypeError);
  for (let i = 0; i < 1_000; i++)
    expect(run.cancel({ message: 'late' }, { mode: 'kill' })).toEqual({ result: 'too-late' });
  expect(JSON.stringify(await run.outcome)).toBe(before);
  const ends = recorder.history.filter((entry) => entry.seen === 'event' && entry.event.type === 'run-end');
  expect(ends).toHaveLength(1);
  await close();
});

/** Stores whose server can be stopped and started again on the same data. */
const restarts = [
  {
    name: 'SQLite',
    open() {
      const folder = temporaryFolder();
      const end = () => Promise.resolve(folder[Symbol.dispose]());
      return Promise.resolve({ location: folder.file, restart: () => Promise.resolve(), [Symbol.asyncDispose]: end });
    },
  },
  {
    name: 'Postgres',
    async open() {
      const server = await startPostgres({ durable: true });
      const location = JSON.stringify({ backend: 'postgres', url: server.url });
      const restart = () => server.restart('immediate');
      return { location, restart, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
    },
  },
];

test.concurrent.each(restarts)(
  'an ended task on $name is the same after a crash of the server, and cannot be ended again',
  async (kind) => {
    await using shared = await kind.open();
    const tenant = 'acme';
    await using store = openStore(shared.location);
    const receipt = await store.create({ tenant, agent: 'a', input: 'x' });
    const { id } = (receipt as { task: { id: string } }).task;
    const claimed = await store.claim(id, { worker: 'w', leaseMs: 60_000, session: 's', claim: 'c' });
    if (claimed.result !== 'claimed') return expect.unreachable();
    const by = claimed.claim;
    await store.append(by, { after: 0, events: [{ said: 'something' }] });
    await store.finish(by, { status: 'success', answer: 'done' });
    const [record, journal] = [await store.get({ tenant, id }), await store.read({ tenant, id })];
    await shared.restart();

    await using again = openStore(shared.location);
    const late = [
      () => again.finish(by, { status: 'failed' }),
      () => again.finish({ ...by, epoch: 2 }, { status: 'failed' }),
      () => again.append(by, { after: 1, events: [{ said: 'more' }] }),
      () => again.release(by),
      () => again.heartbeat({ session: by.session, count: 1 }),
      () => again.claim(id, { worker: 'other', leaseMs: 60_000, session: 'other', claim: 'other' }),
      () => again.cancel({ tenant, id }, { message: 'late' }, { mode: 'kill', undo: true }),
      () => again.send({ tenant, id }, { type: 'steer', message: 'late' }),
    ];
    for (const attempt of late) {
      await attempt().catch((error: unknown) => expect(error).toMatchObject({ code: 'LEASE_LOST' }));
      expect(await again.get({ tenant, id })).toEqual(record);
    }
    expect(await again.read({ tenant, id })).toEqual(journal);
  },
);
