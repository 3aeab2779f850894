import { type CallResult, CancellationToken, createRuntime, type Tool } from '@whoa/core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Opened, openTestServer, TASK_SERVER } from '../../../../test/tools/mcp-server.ts';
import { expectNothingLeft } from '../../../../test/tools/nothing-left.ts';
import { callTool } from '../../../../test/workspace.ts';
import type { McpOptions } from './mcp-tools.ts';

expectNothingLeft();

const open = (mode: 'stdio' | 'http', options: Partial<McpOptions> = {}) =>
  openTestServer(mode, { file: TASK_SERVER, ...options });

function start(tool: Tool, token: CancellationToken, onUpdate = (): void => {}): Promise<CallResult> {
  return createRuntime({ tools: [tool], hooks: { 'call-update': onUpdate } })
    .execute([{ id: 'call', tool: tool.name, input: {} }], { token })
    .then(
      ([only]) => only!,
      (error: { partial: CallResult[] }) => error.partial[0]!,
    );
}

const count = (log: string, line: string): number => log.split('\n').filter((one) => one === line).length;

describe.each(['stdio', 'http'] as const)('%s', (mode) => {
  let opened: Opened;
  let approve: NonNullable<McpOptions['approve']>;
  beforeAll(async () => {
    opened = await open(mode, { approve: (question, context) => approve(question, context) });
  });
  afterAll(() => opened[Symbol.asyncDispose]());
  test('a call that became a task is followed to its end, and one that did not is as ever', async () => {
    const { tool } = opened;
    expect(await callTool(tool('quick'), {})).toMatchObject({ state: 'finished', content: 'done' });
    expect(await callTool(tool('plain'), {})).toMatchObject({ state: 'finished', content: 'no task' });
    expect(await callTool(tool('fails'), {})).toMatchObject({ state: 'failed', content: 'the disk is full' });
    expect((await callTool(tool('quits'), {})).content).toBe("The MCP server 'test' cancelled the task");
    expect(opened.log()).not.toContain('tasks/cancel');
  });

  test('a cancel is sent as tasks/cancel, and the server confirms it: interrupted, not unknown', async () => {
    using token = new CancellationToken();
    const { promise: updated, resolve } = Promise.withResolvers<void>();
    const result = start(opened.tool('cooperative'), token, resolve);
    await updated;
    token.cancel({ kind: 'user' }, { mode: 'now' });
    token.cancel({ kind: 'user' }, { mode: 'now' });
    const ended = await result;
    expect(ended.state).toBe('interrupted');
    expect(ended.content).toContain('half way\nThe server confirmed that its task was cancelled.');
    expect(count(opened.log(), 'tasks/cancel cooperative')).toBe(1);
    const asked = opened.log();
    token.cancel({ kind: 'user' }, { mode: 'kill' });
    expect(await callTool(opened.tool('plain'), {})).toMatchObject({ content: 'no task' });
    expect(opened.log()).toBe(`${asked}call plain\n`);
    expect(token.statistics).toEqual({ children: 0, listeners: 0 });
  });

  test('a call that is cancelled while its task is created is cancelled as a task', async () => {
    using token = new CancellationToken();
    const result = start(opened.tool('late'), token);
    await opened.waitForLog('call late');
    token.cancel({ kind: 'user' }, { mode: 'now' });
    expect((await result).state).toBe('interrupted');
    expect(opened.log()).toContain('tasks/cancel late');
  });

  test('a task that finished before the cancel reached it has finished', async () => {
    using token = new CancellationToken();
    const result = start(opened.tool('faster'), token);
    await opened.waitForLog('tasks/get faster');
    token.cancel({ kind: 'user' }, { mode: 'now' });
    expect(await result).toMatchObject({ state: 'finished', content: 'it had finished' });
  });

  test.each(['deaf', 'refuses'])('a task that does not stop (%s) is left within the ladder, unknown', async (name) => {
    using token = new CancellationToken();
    const result = start(opened.tool(name), token);
    await opened.waitForLog(`tasks/get ${name}`);
    token.cancel({ kind: 'user' }, { mode: { abortMs: 300 } });
    const ended = await result;
    expect(ended.state).toBe('unknown');
    expect(ended.content).toContain('It may have taken effect');
    expect(count(opened.log(), `tasks/cancel ${name}`)).toBe(1);
  });

  test('cancelled before it starts, nothing is sent', async () => {
    using token = new CancellationToken();
    const before = opened.log();
    token.cancel({ kind: 'user' });
    expect((await callTool(opened.tool('cooperative'), {}, { token })).state).toBe('not-started');
    expect(opened.log()).toBe(before);
  });

  test('a kill returns immediately and still notifies the server', async () => {
    using token = new CancellationToken();
    const result = start(opened.tool('killed'), token);
    await opened.waitForLog('tasks/get killed');
    token.cancel({ kind: 'user' }, { mode: 'kill' });
    expect((await result).state).toBe('unknown');
    await opened.waitForLog('tasks/cancel killed');
  });

  test.each([
    ['nonsense', /could not say how its task ended|sent an invalid response/],
    ['no_result', /sent an invalid response for its task/],
    ['no_id', /started a task that cannot be followed/],
    ['forgets', /could not say how its task ended \(unknown task\)/],
  ])('nonsense about a task (%s) ends its call, unknown', async (name, words) => {
    const result = await callTool(opened.tool(name), {});
    expect(result).toMatchObject({ state: 'unknown', isError: true });
    expect(result.content).toMatch(words);
    // No one follows it any more, so it must not keep running.
    if (name === 'nonsense') expect(opened.log()).toContain('tasks/cancel nonsense');
  });

  test('a question of a task is answered by the approval, yes and no', async () => {
    const seen: unknown[] = [];
    const answers = [true, false];
    approve = (question) => {
      seen.push(question);
      return answers.shift()!;
    };
    expect((await callTool(opened.tool('asks'), {})).content).toBe('the answer was accept');
    expect((await callTool(opened.tool('asks'), {})).content).toBe('the answer was decline');
    expect(seen).toEqual(Array(2).fill({ server: 'test', tool: 'asks', message: 'Deploy to production?' }));
    answers.push(true);
    expect(await callTool(opened.tool('stubborn'), {})).toMatchObject({ state: 'unknown' });
    const more = await callTool(opened.tool('asks_more'), {});
    expect(more).toMatchObject({ state: 'failed' });
    expect(more.content).toContain('only yes or no questions can be answered');
  });

  test('a form that a yes sends as it is is shown with every field, and its defaults are sent', async () => {
    let shown = '';
    approve = ({ message }) => {
      shown = message;
      return true;
    };
    expect((await callTool(opened.tool('asks_form'), {})).content).toBe(
      'the answer was accept {"region":"eu","force":true}',
    );
    expect(shown).toBe(
      'Deploy to production?\n\nYes sends this form:\n- "region", Where: "eu"\n- "note": empty\n- "force", Skip tests: true',
    );
  });

  test('a form with a field that needs more than a default is not shown, and fails', async () => {
    approve = () => expect.unreachable('must not be asked');
    expect((await callTool(opened.tool('asks_object'), {})).content).toContain('only yes or no questions');
  });

  test('a cancel while the user is asked withdraws the question and cancels the task', async () => {
    const { promise: asked, resolve } = Promise.withResolvers<AbortSignal>();
    approve = (_, { signal }) => {
      resolve(signal);
      return new Promise<boolean>(() => {});
    };
    using token = new CancellationToken();
    const result = start(opened.tool('withdraws'), token);
    const signal = await asked;
    token.cancel({ kind: 'user' }, { mode: 'now' });
    expect((await result).state).toBe('interrupted');
    expect(signal.aborted).toBe(true);
    expect(opened.log()).not.toContain('tasks/update withdraws');
  });
});

test('a question without an approval cancels the task, and fails with what to do', async () => {
  await using opened = await open('http');
  const result = await callTool(opened.tool('asks'), {});
  expect(result.content).toBe(
    "The MCP server 'test' asks for input (Deploy to production?), so its task was cancelled; pass approve to createMcpTools",
  );
  expect(count(opened.log(), 'tasks/cancel asks')).toBe(1);
});

test('a server that crashes takes its tasks with it: unknown', async () => {
  await using opened = await open('stdio');
  const result = await callTool(opened.tool('crashes'), {});
  expect(result).toMatchObject({ state: 'unknown', isError: true });
  expect(result.content).toContain('exit code 3');
});

test('a task outlives errors over HTTP, and is unknown once its server was killed', async () => {
  await using opened = await open('http');
  expect(await callTool(opened.tool('flaky'), {})).toMatchObject({ state: 'finished', content: 'third time' });
  using token = new CancellationToken();
  const result = start(opened.tool('cooperative'), token);
  await opened.waitForLog('tasks/get cooperative');
  await opened.kill();
  expect(await result).toMatchObject({ state: 'unknown', isError: true });
});

test('closing the tools ends a call that follows a task', async () => {
  const opened = await open('http');
  using token = new CancellationToken();
  const result = start(opened.tool('deaf'), token);
  await opened.waitForLog('tasks/get deaf');
  await opened[Symbol.asyncDispose]();
  expect((await result).state).toBe('unknown');
});
