import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { createSqliteSessions } from '@whoa/tasks/internal';
import { expect, onTestFinished, test } from 'vitest';
import type { StoredSession } from '../../packages/tasks/src/ledger/sqlite-sessions.ts';
import { isNight } from '../night.ts';
import { until } from '../promises/fixture.ts';
import { measureSlowness } from '../slowness.ts';
import { SERVER } from '../tools/mcp-server.ts';
import { ask, edit, type Message } from './acp-editor.ts';
import { createHome, type Home } from './terminal.ts';

function home(script: unknown): Home {
  const made = createHome({ 'script.json': JSON.stringify(script) });
  onTestFinished(() => made[Symbol.dispose]());
  return made;
}

const SLOW = [['Let me see. ', { call: 'bash', input: { command: 'echo begun; sleep 300' } }], ['All is well.']];

test("a prompt in an editor is a task that 'whoa cancel' stops", async () => {
  const own = home(SLOW);
  const editor = edit(own, ['acp', '--yes', '--sandbox', 'none', '--model', 'scripted:script.json']);
  const session = await editor.start();
  const answer = editor.send('session/prompt', ask(session, 'Is all well?'));
  await editor.waitFor(({ params }) => params?.update?.status === 'in_progress');
  const task = JSON.parse((await own.main(['tasks', '--json'])).stdout) as { id: string; status: string };
  expect(task).toMatchObject({ status: 'running', inputs: ['Is all well?'] });
  const { status, stdout } = await own.main(['cancel', task.id, '--mode', 'now', '--reason', 'lunch']);
  expect(stdout).toMatch(/user: lunch.*nothing was left behind[\s\S]*bash interrupted/);
  expect(status).toBe(0);
  expect((await answer).result).toMatchObject({ stopReason: 'cancelled' });
  expect(await editor.end()).toBe(0);
});

test("a question in an editor is answered by 'whoa approve', and withdrawn in the editor", async () => {
  const call = (id: string) => ({ call: 'bash', id, input: { command: `echo ${id}` } });
  const own = home([[call('one')], [call('two')], ['Done.']]);
  const editor = edit(own, ['acp', '--sandbox', 'none', '--model', 'scripted:script.json']);
  const session = await editor.start();
  const answer = editor.send('session/prompt', ask(session, 'Go'));
  const isQuestion = ({ method }: Message): boolean => method === 'session/request_permission';
  const asked = await editor.waitFor(isQuestion);
  const { id } = JSON.parse((await own.main(['tasks', '--json'])).stdout) as { id: string };
  let printed = '';
  await until(async () => (printed = (await own.main(['approve', id, '--json'])).stdout.trim()).includes('"question"'));
  const { id: question } = JSON.parse(printed) as { id: string };
  const approved = await own.main(['approve', id, '--question', question, '--yes']);
  expect(approved).toMatchObject({ status: 0 });
  const isWithdrawn = ({ method, params }: Message): boolean =>
    method === '$/cancel_request' && (params as { requestId?: number }).requestId === asked.id;
  await editor.waitFor(isWithdrawn);
  // The next one is answered in the editor, and no longer waits anywhere else.
  const next = await editor.waitFor((message) => isQuestion(message) && message.id !== asked.id);
  const outcome = { outcome: 'selected', optionId: 'allow' };
  editor.child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: next.id, result: { outcome } })}\n`);
  expect((await answer).result).toMatchObject({ stopReason: 'end_turn' });
  const calls = editor.seen.filter(({ params }) => params?.update?.status === 'completed');
  expect(calls).toHaveLength(2);
  expect((await own.main(['approve', id, '--json'])).status).toBe(1);
  expect(await editor.end()).toBe(0);
});

test('a cancel in the editor ends the task, with the same reason in the store', async () => {
  const own = home(SLOW);
  const editor = edit(own, ['acp', '--yes', '--sandbox', 'none', '--model', 'scripted:script.json']);
  const session = await editor.start();
  const answer = editor.send('session/prompt', ask(session, 'Is all well?'));
  await editor.waitFor(({ params }) => params?.update?.status === 'in_progress');
  editor.child.stdin.write(
    `${JSON.stringify({ jsonrpc: '2.0', method: 'session/cancel', params: { sessionId: session } })}\n`,
  );
  expect((await answer).result).toMatchObject({ stopReason: 'cancelled' });
  expect(await editor.end()).toBe(0);
  const task = JSON.parse((await own.main(['tasks', '--json'])).stdout) as object;
  expect(task).toMatchObject({
    status: 'cancelled',
    outcome: { reason: { kind: 'user' }, stopReport: { isClean: true } },
  });
});

test('a prompt that succeeds is a task that succeeded, and signals end the command', async () => {
  const own = home([['Fine.']]);
  const editor = edit(own, ['acp', '--model', 'scripted:script.json']);
  const session = await editor.start();
  const { result } = await editor.send('session/prompt', ask(session, 'How?'));
  expect(result).toMatchObject({ stopReason: 'end_turn' });
  editor.child.kill('SIGTERM');
  expect(await once(editor.child, 'close')).toEqual([0, null]);
  expect(JSON.parse((await own.main(['tasks', '--json'])).stdout)).toMatchObject({
    status: 'success',
    outcome: { answer: 'Fine.' },
  });
});

test('a session of a command that was killed mid-answer is loaded with the partial answer and the stopped call', async () => {
  const own = home(SLOW);
  const command = ['acp', '--yes', '--sandbox', 'none', '--model', 'scripted:script.json'];
  const killed = edit(own, command);
  const sessionId = await killed.start();
  killed.child.stdin.write(
    `${JSON.stringify({ jsonrpc: '2.0', id: 99, method: 'session/prompt', params: ask(sessionId, 'Is all well?') })}\n`,
  );
  await killed.waitFor(({ params }) => params?.update?.status === 'in_progress');
  await waitUntilKept(own, { sessionId, text: '"unknown"' });
  killed.child.kill('SIGKILL');
  await once(killed.child, 'close');

  const second = edit(own, command);
  await second.send('initialize', { protocolVersion: 1, clientCapabilities: {} });
  const { result } = await second.send('session/list', {});
  expect(result).toMatchObject({ sessions: [{ sessionId, title: 'Is all well?', cwd: own.folder.path }] });
  await second.send('session/load', { sessionId, cwd: own.folder.path, mcpServers: [] });
  expect(second.seen.flatMap(({ params }) => params?.update ?? [])).toMatchObject([
    { sessionUpdate: 'user_message_chunk', content: { text: 'Is all well?' } },
    { sessionUpdate: 'agent_message_chunk', content: { text: 'Let me see. ' } },
    { sessionUpdate: 'tool_call', title: expect.stringContaining('bash') as string },
    { sessionUpdate: 'tool_call_update', status: 'failed', rawOutput: { cancelled: true, state: 'unknown' } },
  ]);
  expect(await second.end()).toBe(0);
});

test('a missing key is reported in the editor, with the variable to set', async () => {
  const editor = edit(home([]), ['acp']);
  await expect(editor.start()).rejects.toThrow(/ANTHROPIC_API_KEY or OPENAI_API_KEY/);
  await editor.end();
});

test("a session opens without those of the editor's servers that fail, and the user is notified", async () => {
  const own = home([[{ call: 'duplicate_echo', input: { say: 'hi' } }], ['Done.']]);
  const editor = edit(own, ['acp', '--yes', '--sandbox', 'none', '--model', 'scripted:script.json']);
  await editor.send('initialize', { protocolVersion: 1, clientCapabilities: {} });
  const duplicate = {
    name: 'duplicate',
    command: process.execPath,
    args: [SERVER, 'stdio', own.folder.at('log')],
    env: [],
  };
  const gone = { name: 'gone', command: '/no/such/server', args: [], env: [] };
  const ended = { name: 'ended', command: '/bin/false', args: [], env: [] };
  const params = { cwd: own.folder.path, mcpServers: [gone, duplicate, duplicate, ended] };
  const { result } = await editor.send('session/new', params);
  const answer = await editor.send('session/prompt', ask(result!['sessionId'] as string, 'Echo'));
  expect(answer.result).toMatchObject({ stopReason: 'end_turn' });
  const shown = JSON.stringify(editor.seen);
  expect(shown).toContain("The MCP server 'gone' was left out");
  expect(shown).toContain("The MCP server 'duplicate' was left out: another server has a tool named 'duplicate_echo'");
  expect(shown).toContain("The MCP server 'ended' was left out");
  expect(editor.seen).toContainEqual(
    expect.objectContaining({
      params: expect.objectContaining({
        update: expect.objectContaining({ status: 'completed' }) as unknown,
      }) as unknown,
    }),
  );
  await editor.end();
});

test('how full the context is is shown, and a session in a folder that does not exist is rejected', async () => {
  const own = home([['Fine.']]);
  const editor = edit(own, ['acp', '--model', 'scripted:script.json']);
  const session = await editor.start();
  await editor.send('session/prompt', ask(session, 'How?'));
  const used = editor.seen.find(({ params }) => params?.update?.sessionUpdate === 'usage_update');
  expect(used?.params?.update).toMatchObject({ size: 128_000, used: expect.any(Number) as number });
  const { error } = await editor.send('session/new', { cwd: '/no/such/folder', mcpServers: [] });
  expect(error?.message).toContain("there is no folder '/no/such/folder'");
  await editor.end();
});

test('compiled code is kept before an editor can kill the command, in the folder of the person', async () => {
  const own = home([['Fine.']]);
  const cache = own.folder.at('cache');
  const env = { ...own.env, XDG_CACHE_HOME: cache, NODE_COMPILE_CACHE: '' };
  const editor = edit({ ...own, env }, ['acp', '--model', 'scripted:script.json']);
  await editor.start();
  editor.child.kill('SIGKILL');
  await once(editor.child, 'close');
  expect(readdirSync(`${cache}/whoa/compiled`, { recursive: true }).length).toBeGreaterThan(100);
});

test('a user who starts it by hand sees what it waits for', async () => {
  const terminal = home([['Fine.']]).openTerminal();
  terminal.type('whoa acp; echo "exit:$?"');
  terminal.press('Enter');
  await terminal.waitFor(/whoa acp: waiting for an editor on standard input/);
  terminal.press('C-c');
  await terminal.waitFor(/exit:0/);
});

test.runIf(isNight)('the echo agent waits and repeats', async () => {
  const editor = edit(home([]), ['echo', '--delay', '0.01']);
  const session = await editor.start();
  expect((await editor.send('session/prompt', ask(session, 'Hello?'))).result).toMatchObject({
    stopReason: 'end_turn',
  });
  await editor.end();
});

/** Reads along in the file of the command, as another process may. */
async function waitUntilKept(
  { folder }: Home,
  { sessionId, text }: { sessionId: string; text: string },
): Promise<void> {
  await using sessions = createSqliteSessions<StoredSession>({ file: folder.at('state/whoa/tasks.db') });
  for (;;) {
    if (JSON.stringify(await sessions.load(sessionId))?.includes(text)) return;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Stops reading the command's output, and waits until it is stuck. */
async function stopReading({ child, waitFor }: ReturnType<typeof edit>): Promise<void> {
  await waitFor(({ params }) => JSON.stringify(params ?? '').includes('PRINTED'));
  child.stdout.pause();
}

test.each(['SIGTERM', 'the end of the input'])('%s ends the command even if no one reads its output', async (mode) => {
  const own = home([[{ call: 'bash', input: { command: "yes PRINT''ED" } }], ['x']]);
  const editor = edit(own, ['acp', '--yes', '--sandbox', 'none', '--model', 'scripted:script.json']);
  const session = await editor.start();
  editor.child.stdin.write(
    `${JSON.stringify({ jsonrpc: '2.0', id: 'p', method: 'session/prompt', params: ask(session, 'go') })}\n`,
  );
  await stopReading(editor);
  const exited = once(editor.child, 'exit');
  const started = performance.now();
  if (mode === 'SIGTERM') editor.child.kill('SIGTERM');
  else editor.child.stdin.end();
  await exited;
  expect(performance.now() - started).toBeLessThan(15_000 * measureSlowness());
  expect(editor.child.exitCode).not.toBeNull();
});
