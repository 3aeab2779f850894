// P9 Effects are whole: a call that must finish is never cut, at any door and any level; a file is the old one or the new
// one; an undo starts at most once, also when its worker is killed in the middle of it.
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { checkHistory } from '@whoa/core/testing';
import { describe, expect, test } from 'vitest';
import { openStore } from '../tasks/open-store.ts';
import { linesOf, openScene, until } from './scene.ts';
import { everySurface } from './surfaces/all.ts';
import { castHere } from './surfaces/run.ts';
import { followTask, MORTAL_LEASE_MS, sharedPlaces, startWorker } from './surfaces/task.ts';

describe.concurrent.each(everySurface())('$name', (surface) => {
  test('lets a payment finish even when it is killed, and says so', async () => {
    await using scene = await openScene([{ parts: [{ call: 'pay', id: 'p' }] }]);
    await using stage = await surface.open(scene);
    writeFileSync(scene.at('hold-pay'), '');
    const show = await stage.start('go');
    await until(() => existsSync(scene.at('paid.log')));
    await show.cancel({ message: 'too late for that' }, { mode: 'kill' });
    await show.heard();
    rmSync(scene.at('hold-pay'));
    const end = await show.end();
    expect(linesOf(scene.at('paid.log'))).toEqual(['p begun', 'p done']);
    expect(end).toMatchObject({ status: 'cancelled', calls: [{ callId: 'p', state: 'finished', content: 'paid' }] });
    expect(end.report).toMatchObject({ clean: true, calls: [{ callId: 'p', waitedFor: true }] });
    expect(checkHistory(await show.history())).toEqual([]);
  });
});

describe.concurrent.each(everySurface(['SQLite']).filter(({ name }) => name !== 'an editor'))('$name', (surface) => {
  test('takes back what was done when the cancel asks for it, last first and once', async () => {
    await using scene = await openScene([
      { parts: [{ call: 'book', id: 'b1' }] },
      { parts: [{ call: 'book', id: 'b2' }] },
      { parts: [{ call: 'wait', id: 'w' }] },
    ]);
    await using stage = await surface.open(scene);
    const show = await stage.start('go');
    await scene.started('wait');
    expect(existsSync(scene.at('booking-b1')) && existsSync(scene.at('booking-b2'))).toBe(true);
    await show.cancel({ message: 'take it back' }, { mode: 'now', undo: true });
    const { report } = await show.end();
    expect(linesOf(scene.at('undone.log'))).toEqual(['b2', 'b1']);
    expect(readdirSync(scene.folder).filter((name) => name.startsWith('booking'))).toEqual([]);
    expect(Object.fromEntries(report!.calls.map((call) => [call.callId, call.undo]))).toEqual({
      b1: 'undone',
      b2: 'undone',
    });
    expect(checkHistory(await show.history())).toEqual([]);
  });
});

test.concurrent.each(sharedPlaces())(
  'an undo on $name whose worker is killed in the middle is unknown, and is not started again',
  async (place) => {
    await using scene = await openScene([
      { parts: [{ call: 'book', id: 'b' }] },
      { parts: [{ call: 'wait', id: 'w' }] },
    ]);
    writeFileSync(scene.at('hold-undo'), '');
    const where = await place.open();
    await using store = openStore(where);
    await using doomed = startWorker(where, scene, { leaseMs: MORTAL_LEASE_MS });
    const receipt = await store.create({ tenant: 'acme', agent: 'cast', input: 'go' });
    const show = followTask(store, { tenant: 'acme', id: (receipt as { task: { id: string } }).task.id }, scene);
    await scene.started('wait');
    const told = await show.cancel({ message: 'take it back' }, { mode: 'now', undo: true });
    expect(told).toMatchObject({ answer: 'accepted', status: 'cancelling' });
    await until(() => linesOf(scene.at('undone.log')).length > 0);
    doomed.process.kill('SIGKILL');
    await doomed.ended;
    rmSync(scene.at('hold-undo'));
    await using next = startWorker(where, scene);
    const { status, report } = await show.end();
    expect(status).toBe('cancelled');
    expect(report!.calls.find(({ callId }) => callId === 'b')).toMatchObject({ undo: 'unknown' });
    expect(linesOf(scene.at('undone.log'))).toEqual(['b']);
    expect(existsSync(scene.at('booking-b'))).toBe(true);
    expect(checkHistory(await show.history())).toEqual([]);
    next.process.send('stop');
    await next.ended;
  },
);

const [OLD, NEW] = ['old\n'.repeat(50_000), 'new\n'.repeat(50_000)];

test('a file that is written when the cancel comes is the old one or the new one, and the result says which', async () => {
  for (const mode of ['now', 'kill'] as const) {
    await using scene = await openScene([
      { parts: [{ call: 'write', id: 'f', input: { path: 'big.txt', content: NEW } }] },
    ]);
    writeFileSync(scene.at('big.txt'), OLD);
    const { agent, recorder, close } = castHere(scene);
    const run = recorder.run(agent.run('go'));
    await scene.started('write');
    run.cancel({ message: 'stop' }, { mode });
    const { calls } = await run.outcome;
    const found = readFileSync(scene.at('big.txt'), 'utf8');
    expect(calls[0]!.state).toBe(found === NEW ? 'finished' : 'interrupted');
    expect(found === NEW || found === OLD).toBe(true);
    expect(readdirSync(scene.folder).filter((name) => name.includes('big'))).toEqual(['big.txt']);
    expect(checkHistory(recorder.history)).toEqual([]);
    await close();
  }
});
