// P11 Nothing left: after the end there is no new process, socket, descriptor, timer, listener or temp file, and the
// process that ran it can exit.
import { getEventListeners } from 'node:events';
import { readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { CancellationToken, type StopMode } from '@whoa/core';
import { checkHistory, type HistoryEntry } from '@whoa/core/testing';
import { listResources, waitForNoNewResources } from '@whoa/tools/testing';
import { expect, test } from 'vitest';
import { openEditor } from '../command/editor.ts';
import { openStore } from '../tasks/open-store.ts';
import { type Fixture, openFixture, until } from './fixture.ts';
import { startCommand } from './surfaces/command.ts';
import { createLocalAgent } from './surfaces/run.ts';
import { followTask, sharedStores, startWorker } from './surfaces/task.ts';

const ROUNDS = 12;
const SETTLE_MS = 5_000;

/** A shell with a tree of processes, a call that waits, and words. */
async function openBusy(): Promise<Fixture> {
  let command = '';
  const fixture = await openFixture(({ results }) =>
    results === 0
      ? { parts: [{ text: 'Much to do. ' }, { call: 'bash', id: 'b', input: { command } }, { call: 'wait', id: 'w' }] }
      : undefined,
  );
  command = fixture.tree;
  return fixture;
}

/** One process's entries in the folder for temporary files. */
const listTempFiles = (pid: number): string[] =>
  readdirSync(tmpdir()).filter((name) => name.startsWith('whoa-') && name.split('-').includes(`${pid}`));

test(`${ROUNDS} runs stopped in every way leave nothing in this process and nothing on the token they shared`, async () => {
  await using fixture = await openBusy();
  const ways: StopMode[] = ['now', 'kill', { drainMs: 20, abortMs: 2_000 }];
  const before = listResources();
  const root = new CancellationToken({ name: 'root' });
  const { signal } = new AbortController();
  const { agent, recorder, close } = createLocalAgent(fixture);
  for (let round = 0; round < ROUNDS; round++) {
    const run = recorder.run(agent.run('go', round % 2 === 0 ? { token: root } : { signal }));
    await fixture.started('wait', round + 1);
    // A kill does not wait for a command that is just starting; then it would be named as abandoned, and truly.
    await until(() => fixture.processes().length >= 5);
    run.cancel({ message: 'enough' }, { mode: ways[round % ways.length]! });
    expect(await run.outcome).toMatchObject({ status: 'cancelled', stop: { isClean: true } });
    expect(fixture.processes()).toEqual([]);
  }
  await close();
  expect(getEventListeners(signal, 'abort')).toEqual([]);
  recorder.recordToken(root);
  // The provider keeps idle sockets open for a while, as fetch does; they do not belong to the run.
  await fixture.provider.close();
  const left = await waitForNoNewResources(before, SETTLE_MS);
  const history: HistoryEntry[] = [
    ...recorder.history,
    { seen: 'left', where: 'this process', things: left.filter(isOurs) },
  ];
  expect(checkHistory(history)).toEqual([]);
});

/** The process that runs the tests has its own helpers. */
const isOurs = (thing: string): boolean => !/resource (MessagePort|PipeWrap|TTYWrap)/.test(thing);

test.concurrent.each(sharedStores())(
  'a worker on $name that is stopped after a cancel exits by itself and leaves nothing',
  async (location) => {
    await using fixture = await openBusy();
    const where = await location.open();
    await using store = openStore(where);
    await using worker = startWorker(where, fixture);
    const receipt = await store.create({ tenant: 'acme', agent: 'tester', input: 'go' });
    const prompt = followTask(store, { tenant: 'acme', id: (receipt as { task: { id: string } }).task.id }, fixture);
    await fixture.started('wait');
    await until(() => fixture.processes().length >= 5);
    await prompt.cancel({ message: 'enough' }, { mode: 'now' });
    expect(await prompt.end()).toMatchObject({ status: 'cancelled', report: { isClean: true } });
    worker.process.send('stop');
    // Nothing keeps it alive: no timer, no socket, no child. It exits without a request.
    expect(await worker.ended).toBe(0);
    expect(fixture.processes()).toEqual([]);
    await until(() => fixture.provider.openConnections === 0, SETTLE_MS);
    expect(listTempFiles(worker.process.pid!)).toEqual([]);
  },
);

test.concurrent.each(['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGKILL'] as const)(
  'the command that gets %s leaves no process and no temp file',
  async (signal) => {
    await using fixture = await openBusy();
    const command = startCommand(fixture, ['run', '--json', '--yes', '--sandbox', 'none', 'go']);
    await fixture.started('wait');
    await until(() => fixture.processes().length >= 5);
    command.kill(signal);
    expect((await command.over).code).toBe(signal === 'SIGKILL' ? null : 130);
    await until(() => fixture.processes().length === 0, SETTLE_MS);
    await until(() => listTempFiles(command.pid).length === 0, SETTLE_MS);
    await until(() => fixture.provider.openConnections === 0, SETTLE_MS);
  },
);

test('the agent of an editor that is closed during a prompt leaves no process and no temp file', async () => {
  await using fixture = await openBusy();
  const editor = await openEditor(fixture.home);
  const answer = editor.prompt('go').catch((error: unknown) => error);
  await fixture.started('wait');
  await until(() => fixture.processes().length >= 5);
  await editor.close();
  await answer;
  expect(fixture.processes()).toEqual([]);
  expect(listTempFiles(editor.child.pid!)).toEqual([]);
  await until(() => fixture.provider.openConnections === 0, SETTLE_MS);
});
