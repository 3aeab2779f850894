// Failures seen in other agents and in JavaScript in general that no other test covers. The table in
// docs/evidence/seen-elsewhere.md lists the test for each.
import { spawn } from 'node:child_process';
import { getEventListeners, once } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { CancellationToken, createAgent, createRuntime, defineTool } from '@whoa/core';
import { systemClock } from '@whoa/core/embed';
import { callTools, reply } from '@whoa/core/model';
import { checkHistory, createRecorder } from '@whoa/core/testing';
import { createLsTool } from '@whoa/tools/internal';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { formats } from '../ai-sdk/providers.ts';
import { BIN } from '../command/terminal.ts';
import { openStore } from '../tasks/open-store.ts';
import { openFixture, until } from './fixture.ts';
import { LOCAL, openLocal, startCommand } from './surfaces/command.ts';
import { createLocalAgent } from './surfaces/run.ts';
import { followTask, sharedStores, startWorker } from './surfaces/task.ts';

const plain = { description: 'A tool.', inputSchema: z.object({}), effects: 'read' as const };

test('a deadline fires even if only its listener still references the token, however often garbage is collected', async () => {
  let fired = 0;
  const start = (): void => {
    const token = new CancellationToken({ name: 'forgotten' }).child('child');
    token.onCancel(() => fired++);
    token.cancelAfter(20, { kind: 'deadline' }, { mode: 'kill' });
    expect(token.signal.aborted).toBe(false);
  };
  for (let i = 0; i < 100; i++) start();
  while (fired < 100) {
    global.gc!();
    await turn();
  }
  expect(fired).toBe(100);
});

test('a wall clock that jumps makes no deadline earlier or later', async () => {
  const real = Date.now;
  const token = new CancellationToken();
  const startedAt = performance.now();
  const before = systemClock.now();
  try {
    token.cancelAfter(50, { kind: 'deadline' }, { mode: 'kill' });
    Date.now = () => real() + 3 * 3_600_000;
    expect(token.isCancelled).toBe(false);
    expect(systemClock.now() - before).toBeLessThan(1_000);
    Date.now = () => real() - 3 * 3_600_000;
    await new Promise((resolve) => token.onCancel(resolve));
  } finally {
    Date.now = real;
  }
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(49);
  expect(token.reason?.kind).toBe('deadline');
});

test('a failure, a time-out and a cancel in one instant are one end of a call, with one cause', async () => {
  const recorder = createRecorder();
  const root = new CancellationToken({ name: 'root' });
  let now = (): void => {};
  const doomed = defineTool({
    ...plain,
    name: 'doomed',
    timeoutMs: 60,
    execute: () =>
      new Promise((_, reject) => {
        now = () => {
          root.cancel({ message: 'cancelled' }, { mode: 'kill' });
          reject(new Error('failed'));
        };
      }),
  });
  const agent = createAgent({
    name: 'a',
    hooks: recorder.hooks,
    tools: [recorder.tool(doomed)],
    planner: {
      next: (_history, { turn: number }) =>
        number === 1 ? callTools([{ id: 'd', tool: 'doomed', input: {} }]) : reply('on'),
    },
  });
  const run = recorder.run(agent.run('go', { token: root }));
  for await (const event of run.events) if (event.type === 'call-start') break;
  // The timer of the time-out is due when this returns, and the other two happen before it is looked at.
  const until60 = performance.now() + 60;
  while (performance.now() < until60);
  now();
  expect(await run.outcome).toMatchObject({
    status: 'cancelled',
    reason: { message: 'cancelled' },
    calls: { length: 1 },
  });
  await turn();
  recorder.recordToken(root);
  expect(checkHistory(recorder.history)).toEqual([]);
});

test.each(formats)(
  '%s: usage of a reply that was whole is kept when its call is cancelled, and that of a cut one is never guessed',
  async (format) => {
    await using fixture = await openFixture([
      { parts: [{ call: 'wait', id: 'w' }] },
      { parts: [{ text: ['Hello ', { stall: true }] }] },
    ]);
    const { agent, close } = createLocalAgent(fixture, { format });
    const first = agent.run('go');
    await fixture.started('wait');
    first.cancel({}, { mode: 'now' });
    expect((await first.outcome).usage).toEqual({ inputTokens: 11, outputTokens: 20, isComplete: true });
    const second = agent.run('go');
    await until(() => second.text === 'Hello ');
    second.cancel({}, { mode: 'now' });
    const { usage } = await second.outcome;
    expect(usage.isComplete).toBe(false);
    // Only one of the three reports usage before its end.
    expect(usage.inputTokens).toBe(format === 'anthropic' ? 11 : 0);
    await close();
  },
);

test('twenty calls that fail at the same time leave no listener on the signal they shared', async () => {
  await using fixture = await openFixture();
  const { signal } = new AbortController();
  const runtime = createRuntime({ tools: [createLsTool({ root: fixture.folder })] });
  for (let i = 0; i < 20; i++) {
    const [result] = await runtime.execute([{ id: 'l', tool: 'ls', input: { path: 'missing' } }], { signal });
    expect(result).toMatchObject({ state: 'failed' });
  }
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});

test('a command that is stopped mid-answer has printed its text and stored it', async () => {
  await using fixture = await openFixture([{ parts: [{ text: ['Once ', 'upon ', { stall: true }] }] }]);
  await using store = openLocal(fixture);
  const command = startCommand(fixture, ['run', '--json', 'tell me']);
  const printed = (): string =>
    (command.lines as { type: string; text?: string }[])
      .map(({ type, text }) => (type === 'text' ? text : ''))
      .join('');
  await until(() => printed() === 'Once upon ');
  command.kill('SIGTERM');
  expect(await command.over).toMatchObject({ code: 130 });
  const { tasks } = await store.list({ tenant: LOCAL });
  expect(tasks).toMatchObject([
    { status: 'cancelled', outcome: { answer: 'Once upon ', reason: { kind: 'shutdown', via: 'SIGTERM' } } },
  ]);
});

test('an editor that reads nothing more can still cancel: the order does not queue behind the words', async () => {
  const words = Array.from({ length: 20_000 }, (_, i) => `word${i} and more words to fill every pipe on the way `);
  await using fixture = await openFixture([{ parts: [{ text: [...words, { stall: true }] }] }]);
  const [file = '', ...args] = BIN;
  const child = spawn(file, [...args, 'acp', '--yes', '--sandbox', 'none'], {
    cwd: fixture.folder,
    env: fixture.home.env,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  const send = (message: object): unknown => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  send({ id: 1, method: 'initialize', params: { protocolVersion: 1, clientCapabilities: {} } });
  await once(child.stdout, 'data');
  send({ id: 2, method: 'session/new', params: { cwd: fixture.folder, mcpServers: [] } });
  const [answer] = (await once(child.stdout, 'data')) as [Buffer];
  const sessionId = /"sessionId":"([^"]+)"/.exec(answer.toString())![1];
  child.stdout.pause();
  send({ id: 3, method: 'session/prompt', params: { sessionId, prompt: [{ type: 'text', text: 'go' }] } });
  const request = await fixture.provider.waitForRequest(0);
  await request.waitForCharacters(100_000);
  send({ method: 'session/cancel', params: { sessionId } });
  expect(await request.waitForClose()).toBe('client');
  child.kill('SIGKILL');
  await exited;
});

test.concurrent.each(sharedStores(['SQLite']))(
  'a reader that disconnects does not stop the run, misses nothing when it returns, and can still cancel it',
  async (location) => {
    let go = (): void => {};
    const later = new Promise<void>((resolve) => (go = resolve));
    await using fixture = await openFixture([
      { parts: [{ text: ['Once ', { stall: later }, 'upon ', { stall: true }] }] },
    ]);
    const where = await location.open();
    await using worker = startWorker(where, fixture);
    await using store = openStore(where);
    const receipt = await store.create({ tenant: 'acme', agent: 'tester', input: 'go' });
    const ref = { tenant: 'acme', id: (receipt as { task: { id: string } }).task.id };
    {
      await using reader = openStore(where);
      await using watching = await reader.watch({ id: ref.id }, () => {});
      const seen = followTask(reader, ref, fixture);
      await until(async () => (await seen.readText()) === 'Once ');
      expect(watching).toBeDefined();
    }
    go();
    const prompt = followTask(store, ref, fixture);
    await until(async () => (await prompt.readText()) === 'Once upon ');
    expect(fixture.provider.openResponses).toBe(1);
    await prompt.cancel({ message: 'now' });
    expect(await prompt.end()).toMatchObject({ status: 'cancelled', text: 'Once upon ' });
    worker.process.send('stop');
    await worker.ended;
  },
);
