// P5 Nothing lost: everything that users saw before the end is in the outcome, in order, without gaps or repeats;
// journaled entries survive the kill of a worker. Of what it said in its last second, readers learn what the journal does not have.
import { existsSync } from 'node:fs';
import { toText } from '@whoa/core';
import { checkHistory } from '@whoa/core/testing';
import { followTask as follow } from '@whoa/tasks';
import { describe, expect, test } from 'vitest';
import { openStore } from '../tasks/open-store.ts';
import { ShownJournal } from '../tasks/shown-journal.ts';
import { openFixture, until } from './fixture.ts';
import { everySurface } from './surfaces/all.ts';
import { followTask, MORTAL_LEASE_MS, sharedStores, startWorker } from './surfaces/task.ts';

const STORY = ['Once ', 'upon ', 'a ', 'time '];

describe.concurrent.each(everySurface())('$name', (surface) => {
  test('text that was shown before the stop is kept', async () => {
    await using fixture = await openFixture([{ parts: [{ text: [...STORY, { stall: true }, 'there was'] }] }]);
    await using harness = await surface.open(fixture);
    const prompt = await harness.start('tell me');
    await until(async () => (await prompt.readText()) === STORY.join(''));
    await prompt.cancel({ message: 'enough' }, { mode: 'now' });
    expect(await prompt.end()).toMatchObject({ status: 'cancelled', text: STORY.join('') });
    expect(checkHistory(await prompt.history())).toEqual([]);
  });
});

describe.concurrent.each(everySurface(['SQLite']))('$name', (surface) => {
  test('output of a stopped command, and calls that finished alongside it, are kept', async () => {
    const command = 'for i in 1 2 3; do echo line $i; done; touch printed; sleep 300';
    await using fixture = await openFixture([
      {
        parts: [
          { call: 'look', id: 'l' },
          { call: 'bash', id: 'b', input: { command } },
        ],
      },
    ]);
    await using harness = await surface.open(fixture);
    const prompt = await harness.start('go');
    await fixture.started('bash');
    await until(() => fixture.effects().some(({ tool, phase }) => tool === 'look' && phase === 'resolve'));
    await until(() => existsSync(fixture.at('printed')));
    await prompt.cancel({ message: 'enough' }, { mode: 'now' });
    const { calls } = await prompt.end();
    const said = Object.fromEntries(calls.map(({ callId, state, content }) => [callId, [state, toText(content)]]));
    expect(said['l']).toEqual(['finished', 'found']);
    expect(said['b']?.[0]).toBe('interrupted');
    expect(said['b']?.[1]).toContain('line 1\nline 2\nline 3');
  });
});

test.concurrent.each(sharedStores())(
  'readers of a task on $name whose worker is killed mid-word show what the journal has, and are told once what it does not',
  async (location) => {
    await using fixture = await openFixture([{ parts: [{ text: [...STORY, { stall: true }] }] }]);
    const where = await location.open();
    await using store = openStore(where);
    await using doomed = startWorker(where, fixture, { leaseMs: MORTAL_LEASE_MS });
    const receipt = await store.create({ tenant: 'acme', agent: 'tester', input: 'tell me' });
    const ref = { tenant: 'acme', id: (receipt as { task: { id: string } }).task.id };
    const shown = new ShownJournal();
    for await (const one of follow(store, ref)) {
      if (one.type === 'end') break;
      shown.add(one);
      if (one.type !== 'entry' || one.event.type !== 'text' || !doomed.process.kill('SIGKILL')) continue;
      await doomed.ended;
      await store.cancel(ref, { message: 'enough' });
      await using next = startWorker(where, fixture);
      await until(async () => (await store.get(ref))?.endedAt !== undefined);
      next.process.send('stop');
      await next.ended;
    }
    expect(shown.findProblems(await store.read(ref))).toEqual([]);
  },
);

test.concurrent.each(sharedStores())(
  'journal entries that a reader saw of a task on $name survive the kill of its worker',
  async (location) => {
    await using fixture = await openFixture([{ parts: [{ text: [...STORY, { stall: true }] }] }]);
    const where = await location.open();
    await using store = openStore(where);
    await using doomed = startWorker(where, fixture, { leaseMs: MORTAL_LEASE_MS });
    const receipt = await store.create({ tenant: 'acme', agent: 'tester', input: 'tell me' });
    const ref = { tenant: 'acme', id: (receipt as { task: { id: string } }).task.id };
    const prompt = followTask(store, ref, fixture);
    await until(async () => (await prompt.readText()) === STORY.join(''));
    await until(async () => JSON.stringify(await store.read(ref)).includes(STORY.at(-1)!));
    doomed.process.kill('SIGKILL');
    await doomed.ended;
    expect(await prompt.readText()).toBe(STORY.join(''));
    await prompt.cancel({ message: 'enough' });
    await using next = startWorker(where, fixture);
    expect(await prompt.end()).toMatchObject({ status: 'cancelled', text: STORY.join('') });
    expect(checkHistory(await prompt.history())).toEqual([]);
    next.process.send('stop');
    await next.ended;
  },
);
