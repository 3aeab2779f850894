// P9 Effects are whole: a call that must finish is never cut, through any surface and at any level; a file is the old
// one or the new one; an undo starts at most once, even if its worker is killed while it undoes.
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { checkHistory } from '@whoa/core/testing';
import { describe, expect, test } from 'vitest';
import { openStore } from '../tasks/open-store.ts';
import { openFixture, readLines, until } from './fixture.ts';
import { everySurface } from './surfaces/all.ts';
import { createLocalAgent } from './surfaces/run.ts';
import { followTask, MORTAL_LEASE_MS, sharedStores, startWorker } from './surfaces/task.ts';

describe.concurrent.each(everySurface())('$name', (surface) => {
  test('lets a payment finish even when it is killed, and reports it', async () => {
    await using fixture = await openFixture([{ parts: [{ call: 'pay', id: 'p' }] }]);
    await using harness = await surface.open(fixture);
    writeFileSync(fixture.at('hold-pay'), '');
    const prompt = await harness.start('go');
    await until(() => existsSync(fixture.at('paid.log')));
    await prompt.cancel({ message: 'too late for that' }, { mode: 'kill' });
    await prompt.cancelReceived();
    rmSync(fixture.at('hold-pay'));
    const end = await prompt.end();
    expect(readLines(fixture.at('paid.log'))).toEqual(['p begun', 'p done']);
    expect(end).toMatchObject({ status: 'cancelled', calls: [{ callId: 'p', state: 'finished', content: 'paid' }] });
    expect(end.report).toMatchObject({ isClean: true, calls: [{ callId: 'p', wasWaitedFor: true }] });
    expect(checkHistory(await prompt.history())).toEqual([]);
  });
});

describe.concurrent.each(everySurface(['SQLite']).filter(({ name }) => name !== 'an editor'))('$name', (surface) => {
  test('a cancel with undo reverts the calls, last first and once', async () => {
    await using fixture = await openFixture([
      { parts: [{ call: 'book', id: 'b1' }] },
      { parts: [{ call: 'book', id: 'b2' }] },
      { parts: [{ call: 'wait', id: 'w' }] },
    ]);
    await using harness = await surface.open(fixture);
    const prompt = await harness.start('go');
    await fixture.started('wait');
    expect(existsSync(fixture.at('booking-b1')) && existsSync(fixture.at('booking-b2'))).toBe(true);
    await prompt.cancel({ message: 'take it back' }, { mode: 'now', undo: true });
    const { report } = await prompt.end();
    expect(readLines(fixture.at('undone.log'))).toEqual(['b2', 'b1']);
    expect(readdirSync(fixture.folder).filter((name) => name.startsWith('booking'))).toEqual([]);
    expect(Object.fromEntries(report!.calls.map((call) => [call.callId, call.undo]))).toEqual({
      b1: 'undone',
      b2: 'undone',
    });
    expect(checkHistory(await prompt.history())).toEqual([]);
  });
});

describe.concurrent.each(everySurface(['SQLite']).filter(({ name }) => name !== 'an editor'))('$name', (surface) => {
  test('puts files back when the cancel asks for it, unless someone else has changed them', async () => {
    const edits = [{ oldText: 'new', newText: 'newer' }];
    await using fixture = await openFixture([
      { parts: [{ call: 'write', id: 'f', input: { path: 'text.txt', content: 'new' } }] },
      { parts: [{ call: 'edit', id: 'e', input: { path: 'text.txt', edits } }] },
      { parts: [{ call: 'write', id: 'm', input: { path: 'mine.txt', content: 'yours' } }] },
      { parts: [{ call: 'wait', id: 'w' }] },
    ]);
    writeFileSync(fixture.at('text.txt'), 'old');
    await using harness = await surface.open(fixture);
    const prompt = await harness.start('go');
    await fixture.started('wait');
    expect(readFileSync(fixture.at('text.txt'), 'utf8')).toBe('newer');
    writeFileSync(fixture.at('mine.txt'), 'mine');
    await prompt.cancel({ message: 'take it back' }, { mode: 'now', undo: true });
    const { report } = await prompt.end();
    const read = (name: string): string => readFileSync(fixture.at(name), 'utf8');
    expect([read('text.txt'), read('mine.txt')]).toEqual(['old', 'mine']);
    const undos = report!.calls.flatMap(({ callId, undo, undoError = '' }) =>
      undo ? [[callId, undo, undoError]] : [],
    );
    expect(undos.toSorted(([a = ''], [b = '']) => a.localeCompare(b))).toEqual([
      ['e', 'undone', ''],
      ['f', 'undone', ''],
      ['m', 'failed', expect.stringContaining('changed since')],
    ]);
    expect(checkHistory(await prompt.history())).toEqual([]);
  });
});

test.concurrent.each(sharedStores())(
  'an undo on $name whose worker is killed in the middle is unknown, and is not started again',
  async (location) => {
    await using fixture = await openFixture([
      { parts: [{ call: 'book', id: 'b' }] },
      { parts: [{ call: 'wait', id: 'w' }] },
    ]);
    writeFileSync(fixture.at('hold-undo'), '');
    const where = await location.open();
    await using store = openStore(where);
    await using doomed = startWorker(where, fixture, { leaseMs: MORTAL_LEASE_MS });
    const receipt = await store.create({ tenant: 'acme', agent: 'tester', input: 'go' });
    const prompt = followTask(store, { tenant: 'acme', id: (receipt as { task: { id: string } }).task.id }, fixture);
    await fixture.started('wait');
    const told = await prompt.cancel({ message: 'take it back' }, { mode: 'now', undo: true });
    expect(told).toMatchObject({ result: 'accepted', status: 'cancelling' });
    await until(() => readLines(fixture.at('undone.log')).length > 0);
    doomed.process.kill('SIGKILL');
    await doomed.ended;
    rmSync(fixture.at('hold-undo'));
    await using next = startWorker(where, fixture);
    const { status, report } = await prompt.end();
    expect(status).toBe('cancelled');
    expect(report!.calls.find(({ callId }) => callId === 'b')).toMatchObject({ undo: 'unknown' });
    expect(readLines(fixture.at('undone.log'))).toEqual(['b']);
    expect(existsSync(fixture.at('booking-b'))).toBe(true);
    expect(checkHistory(await prompt.history())).toEqual([]);
    next.process.send('stop');
    await next.ended;
  },
);

const [OLD, NEW] = ['old\n'.repeat(50_000), 'new\n'.repeat(50_000)];

test('a file that is written during a cancel is the old one or the new one, and the result shows which', async () => {
  for (const mode of ['now', 'kill'] as const) {
    await using fixture = await openFixture([
      { parts: [{ call: 'write', id: 'f', input: { path: 'big.txt', content: NEW } }] },
    ]);
    writeFileSync(fixture.at('big.txt'), OLD);
    const { agent, recorder, close } = createLocalAgent(fixture);
    const run = recorder.run(agent.run('go'));
    await fixture.started('write');
    run.cancel({ message: 'stop' }, { mode });
    const { calls } = await run.outcome;
    const found = readFileSync(fixture.at('big.txt'), 'utf8');
    expect(calls[0]!.state).toBe(found === NEW ? 'finished' : 'interrupted');
    expect(found === NEW || found === OLD).toBe(true);
    expect(readdirSync(fixture.folder).filter((name) => name.includes('big'))).toEqual(['big.txt']);
    expect(checkHistory(recorder.history)).toEqual([]);
    await close();
  }
});
