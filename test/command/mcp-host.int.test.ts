// `whoa mcp` and every way in which its host stops, sends requests, or disconnects.
import { existsSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { forChange } from '../night.ts';
import { findMarked } from '../process-escapes/round.ts';
import { type Fields, toRequest } from '../server/mcp-host.ts';
import { measureSlowness } from '../slowness.ts';
import { openHost } from './mcp-process.ts';
import { createHome, type Home } from './terminal.ts';

const MODEL = ['--model', 'scripted:script.json'];
const ALLOWED = [...MODEL, '--yes', '--sandbox', 'none'];

function home(script: unknown, files: Readonly<Record<string, string>> = {}): Home {
  const made = createHome({ 'script.json': JSON.stringify(script), ...files });
  onTestFinished(() => made[Symbol.dispose]());
  return made;
}

const bash = (command: string) => ({ call: 'bash', input: { command } });

/** A command that runs until it is ended, and can be found by its mark. */
function slow(name: string) {
  const mark = `300.${process.pid}${name}`;
  return { mark, script: [['Let me see. ', bash(`sleep ${mark}`)], ['Well.']] };
}

/** Polls, because there is no event for the start and exit of another process. */
async function waitForProcesses(mark: string, isThere: boolean): Promise<void> {
  while (findMarked(mark).length > 0 !== isThere) await new Promise((resolve) => setTimeout(resolve, 5));
}

const readTasks = (own: Home): Fields[] =>
  own
    .whoa(['tasks', '--json'])
    .stdout.trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Fields);

test('the host gets the question that a task waits for, and its answer counts', async () => {
  const own = home([[bash('echo done > made')], ['Fine.']]);
  const host = openHost(own, MODEL);
  const taskId = await host.start();
  const asking = await host.waitForTask(taskId, { status: 'input_required' });
  const [[key, request]] = Object.entries(asking['inputRequests'] as Fields) as [[string, unknown]];
  expect(JSON.stringify(request)).toContain('echo done > made');
  expect(existsSync(own.folder.at('made'))).toBe(false);
  const { result } = await host.ask('tasks/update', { taskId, inputResponses: { [key]: { action: 'accept' } } });
  expect(result).toMatchObject({ resultType: 'complete' });
  expect(await host.waitForTask(taskId, { status: 'completed' })).toMatchObject({
    result: { content: [{ text: 'Fine.' }] },
  });
  expect(own.folder.read('made')).toBe('done\n');
  host.child.stdin.end();
  expect(await host.closed).toEqual([0, null]);
});

test('a cancel of a task ends its processes; a second one or one after the end changes nothing', async () => {
  const { mark, script } = slow('2');
  const own = home(script);
  const host = openHost(own, ALLOWED);
  const taskId = await host.start();
  await waitForProcesses(mark, true);
  const cancels = [toRequest('tasks/cancel', { taskId }), toRequest('tasks/cancel', { taskId })];
  host.write(...cancels);
  for (const { id } of cancels)
    expect(await host.waitFor((one) => one.id === id)).toMatchObject({ result: { resultType: 'complete' } });
  const ended = await host.waitForTask(taskId, { status: 'cancelled' });
  expect(findMarked(mark)).toEqual([]);
  expect(ended).toMatchObject({ statusMessage: 'cancelled (user). Let me see.' });
  expect(await host.ask('tasks/cancel', { taskId })).toMatchObject({ result: { resultType: 'complete' } });
  expect(await host.waitForTask(taskId, { status: 'cancelled' })).toEqual({ ...ended, _meta: ended['_meta'] });
  for (const unknown of ['nonsense', `${taskId}x`, '\u0000', '../x'])
    for (const method of ['tasks/get', 'tasks/cancel', 'tasks/update'])
      expect(await host.ask(method, { taskId: unknown, inputResponses: {} })).toMatchObject({
        error: { code: -32_602 },
      });
});

test('a call that is cancelled in the chunk that brings it runs nothing', async () => {
  const { mark, script } = slow('3');
  const own = home(script);
  const host = openHost(own, ALLOWED);
  const call = toRequest('tools/call', { name: 'assistant', arguments: { prompt: 'Is all well?' } });
  host.write(call, { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: call.id } });
  await host.ask('tools/list', {});
  host.child.stdin.end();
  expect(await host.closed).toEqual([0, null]);
  expect(host.messages.filter(({ id }) => id === call.id)).toEqual([]);
  expect(findMarked(mark)).toEqual([]);
  for (const task of readTasks(own)) expect(task).toMatchObject({ status: 'cancelled' });
});

const DEAF = `
import { createAgent, defineConfig, defineTool } from 'whoa';
const any = { '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value }) } };
const deaf = defineTool({
  name: 'deaf', description: 'Never returns.', inputSchema: any, inputJsonSchema: {}, effects: 'read',
  execute: () => new Promise((resolve) => setTimeout(resolve, 600_000, 'late')),
});
export default defineConfig({
  agents: { deaf: async ({ model }) => createAgent({ name: 'deaf', model: await model(), tools: [deaf] }) },
});
`;
/** How long cleanup may take after the ladder, on a busy machine. */
const AFTER_KILL_MS = 15_000;

test('an agent that ignores its signal is still cancelled within the ladder, and its leftovers are named', async () => {
  const own = home([[{ call: 'deaf' }], ['Done.']], { 'config/whoa/whoa.config.mjs': DEAF });
  const host = openHost(own, ALLOWED);
  const taskId = await host.start('deaf');
  await host.waitForTask(taskId, { statusMessage: 'runs' });
  await host.ask('tasks/cancel', { taskId });
  await host.waitForTask(taskId, { status: 'cancelled' });
  const [task] = readTasks(own) as [{ endedAt: number; stop: { killAt: number }; outcome: Fields }];
  expect(task.outcome).toMatchObject({ status: 'cancelled', reason: { kind: 'user', by: 'MCP host', via: 'mcp' } });
  expect(task.outcome['stopReport']).toMatchObject({ isClean: false, calls: [{ tool: 'deaf', state: 'unknown' }] });
  expect(task.endedAt).toBeLessThan(task.stop.killAt + AFTER_KILL_MS * measureSlowness());
  // The unresponsive call is still pending, and keeps no process alive.
  host.child.stdin.end();
  expect(await host.closed).toEqual([0, null]);
});

test('processes of a killed command are ended immediately, and its tasks are settled by the next one', async () => {
  const { mark, script } = slow('4');
  const own = home(script);
  const killed = openHost(own, ALLOWED);
  const taskId = await killed.start();
  await waitForProcesses(mark, true);
  killed.child.kill('SIGKILL');
  expect(await killed.closed).toEqual([null, 'SIGKILL']);
  await waitForProcesses(mark, false);
  const next = openHost(own, ALLOWED);
  // It is cancelling until the lease of the dead process expires, and then it is cancelled.
  const ended = await next.waitForTask(taskId, { status: 'cancelled' });
  expect(ended['statusMessage']).toMatch(/^cancelled \(disconnect\)/);
  expect(findMarked(mark)).toEqual([]);
  expect(readTasks(own)).toMatchObject([{ id: taskId, outcome: { reason: { kind: 'disconnect', via: 'mcp' } } }]);
});

test('a command that starts leaves alone what another one runs', async () => {
  const { mark, script } = slow('5');
  const own = home(script);
  const first = openHost(own, ALLOWED);
  const taskId = await first.start();
  await waitForProcesses(mark, true);
  const second = openHost(own, ALLOWED);
  expect((await second.ask('tasks/get', { taskId })).result).toMatchObject({
    status: 'working',
    statusMessage: 'runs',
  });
  // Any of them can stop it.
  await second.ask('tasks/cancel', { taskId });
  await second.waitForTask(taskId, { status: 'cancelled' });
  expect(findMarked(mark)).toEqual([]);
});

const ENDS = [
  ['closes its connection in the middle of a message', 'disconnect', 'end'],
  ['sends SIGTERM', 'shutdown', 'SIGTERM'],
] as const;
test.each(forChange(ENDS, (_, index) => index === 0))(
  'a host that does not read and %s ends it all',
  async (_, kind, leave) => {
    const { mark, script } = slow('6');
    const own = home(script);
    const host = openHost(own, ALLOWED, { reads: false });
    const call = toRequest('tools/call', { name: 'assistant', arguments: { prompt: 'Is all well?' } });
    host.write(call);
    await waitForProcesses(mark, true);
    // More than the pipe's buffer.
    const asks = Array.from({ length: 2_000 }, () => toRequest('tools/list', {}));
    // The library ends a subscription with a message, even an empty one.
    host.write(toRequest('subscriptions/listen', { notifications: {} }), ...asks);
    if (leave === 'end') host.child.stdin.end('{"jsonrpc":"2.0","id":1,"meth');
    else host.child.kill(leave);
    // It has ended when its processes have: `close` would wait for the output that nothing reads.
    await new Promise((resolve) => host.child.once('exit', resolve));
    expect(host.child.exitCode).toBe(0);
    expect(findMarked(mark)).toEqual([]);
    expect(readTasks(own)).toMatchObject([{ status: 'cancelled', outcome: { reason: { kind } } }]);
  },
);
