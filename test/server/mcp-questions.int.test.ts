// Approval questions of tasks, asked and answered through an MCP host over loopback HTTP.
import { createAgent, defineTool, type Tool } from '@whoa/core';
import { createScriptedModel } from '@whoa/core/testing';
import {
  type AccessOptions,
  type AuditEvent,
  createAccess,
  createMcpHandler,
  listen,
  type Principal,
  USER_RIGHTS,
} from '@whoa/server';
import { createMemoryStore, createRunner, createTaskApprovals } from '@whoa/tasks';
import { createMcpTools } from '@whoa/tools';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { callTool } from '../workspace.ts';
import { ASKING, ask, type Fields, type HostOptions, TASKS, waitForTask } from './mcp-host.ts';

const PEOPLE: Readonly<Record<string, Principal>> = {
  ann: { tenant: 'acme', name: 'ann', rights: USER_RIGHTS },
  bob: { tenant: 'other', name: 'bob', rights: USER_RIGHTS },
  cat: { tenant: 'acme', name: 'cat', rights: USER_RIGHTS },
  reader: { tenant: 'acme', name: 'reader', rights: ['start', 'read', 'cancel'] },
};

const CALL = { call: 'run', input: { command: 'rm -rf\n  dist', note: 'a\u202eb' } };

interface Served {
  readonly rules?: Pick<AccessOptions, 'starterMayAnswer'>;
  readonly tools?: readonly Tool[];
  readonly calls?: readonly (typeof CALL)[];
}

/** A server whose agent needs approval for each of its two calls, or makes other calls. */
async function serve({ rules = {}, tools = [], calls = [] }: Served = {}) {
  const store = createMemoryStore();
  const approvals = createTaskApprovals();
  const ran: string[] = [];
  const audited: AuditEvent[] = [];
  const tool = defineTool({
    name: 'run',
    description: 'Runs.',
    inputSchema: z.object({ command: z.string(), note: z.string() }),
    effects: 'execute',
    execute: ({ command }) => {
      ran.push(command);
      return 'it ran';
    },
  });
  const own = [CALL, { ...CALL, input: { ...CALL.input, command: 'ls' } }];
  const turns = (calls.length > 0 ? calls : own).map((call) => [call]);
  const model = createScriptedModel([...turns, ['Done.']]);
  const asks = createAgent({ name: 'asks', model, tools: [tool as Tool, ...tools], approve: approvals.approve });
  const runner = createRunner({ store, agents: { asks }, approvals });
  await runner.serve();
  const access = createAccess({
    authenticate: (request) => PEOPLE[request.headers.get('x-user') ?? ''],
    audit: (event) => audited.push(event),
    ...rules,
  });
  const listening = await listen(await createMcpHandler({ store, agents: { asks: 'Asks' }, access }));
  const as = (user: string, capabilities: object = ASKING): HostOptions => ({
    url: listening.url,
    headers: { 'x-user': user },
    capabilities,
  });
  return {
    store,
    ran,
    audited,
    as,
    url: listening.url,
    start: async (host: HostOptions) => {
      const { result } = await ask(host, 'tools/call', { name: 'asks', arguments: { prompt: 'Clean up' } });
      return result!['taskId'] as string;
    },
    async [Symbol.asyncDispose]() {
      await listening[Symbol.asyncDispose]();
      await runner[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
    },
  };
}

type Asked = Record<string, { method: string; params: { message: string; requestedSchema: Fields } }>;

const askedBy = ({ inputRequests }: Fields): [string, Asked[string]] => Object.entries(inputRequests as Asked)[0]!;

test('a task that waits for an approval asks it in full, and continues with the answer', async () => {
  await using served = await serve();
  const ann = served.as('ann');
  const taskId = await served.start(ann);
  const asking = await waitForTask(ann, taskId, 'input_required');
  const [key, request] = askedBy(asking);
  expect(request).toMatchObject({ method: 'elicitation/create', params: { mode: 'form' } });
  expect(request.params.message).toBe(
    'run wants to execute:\n  command:\n    rm -rf\n      dist\n  note: a<U+202E>b\nAllow it?',
  );
  expect(request.params.requestedSchema).toMatchObject({
    type: 'object',
    properties: { remember: { default: false } },
  });
  expect(JSON.stringify(request.params.requestedSchema)).toContain('until this task ends');
  expect(asking).toMatchObject({ taskId, resultType: 'complete' });
  const update = (inputResponses: Fields) => ask(ann, 'tasks/update', { taskId, inputResponses });
  expect(await update({ [key]: { action: 'accept', content: {} } })).toMatchObject({
    result: { resultType: 'complete' },
  });
  // An answered question is gone immediately, and repeating the answer changes nothing.
  expect((await ask(ann, 'tasks/get', { taskId })).result!['inputRequests'] ?? {}).not.toHaveProperty([key]);
  await update({ [key]: { action: 'decline' } });
  const [second] = askedBy(await waitForTask(ann, taskId, 'input_required'));
  expect(second).not.toBe(key);
  expect(served.ran).toEqual(['rm -rf\n  dist']);
  await update({ [key]: { action: 'accept' }, [second]: { action: 'decline' } });
  const ended = await waitForTask(ann, taskId, 'completed');
  expect(ended['result']).toMatchObject({ content: [{ text: 'Done.' }] });
  expect(served.ran).toEqual(['rm -rf\n  dist']);
  expect(served.audited.map(({ actor, type, result }) => `${actor} ${type} ${result}`)).toEqual([
    'ann approve accepted',
    'ann approve accepted',
  ]);
  // After the end.
  expect(await update({ [second]: { action: 'accept' } })).toMatchObject({ result: {} });
  expect(served.ran).toHaveLength(1);
});

test('an approval is remembered only if the answer requests it, for the scope of the question', async () => {
  await using served = await serve();
  const ann = served.as('ann');
  const taskId = await served.start(ann);
  const [key] = askedBy(await waitForTask(ann, taskId, 'input_required'));
  await ask(ann, 'tasks/update', {
    taskId,
    inputResponses: { [key]: { action: 'accept', content: { remember: true } } },
  });
  // The second call has another input, so it needs approval, too.
  const [second] = askedBy(await waitForTask(ann, taskId, 'input_required'));
  await ask(ann, 'tasks/update', { taskId, inputResponses: { [second]: { action: 'cancel' } } });
  await waitForTask(ann, taskId, 'completed');
  expect(served.ran).toEqual(['rm -rf\n  dist']);
  const denied = (await served.store.read({ tenant: 'acme', id: taskId })).map(({ event }) => JSON.stringify(event));
  expect(denied.some((event) => event.includes('the user dismissed the question'))).toBe(true);
});

test('wrong answers, and answers of others, run nothing', async () => {
  await using served = await serve();
  const ann = served.as('ann');
  const taskId = await served.start(ann);
  const [key] = askedBy(await waitForTask(ann, taskId, 'input_required'));
  const accept = { action: 'accept', content: {} };
  const update = (host: HostOptions, params: Fields) => ask(host, 'tasks/update', { taskId, ...params });
  const invalid = { error: { code: -32_602 } };
  expect(await update(ann, {})).toMatchObject(invalid);
  for (const wrong of [{}, { action: 'yes' }, { action: 'accept', content: { remember: 'yes' } }, { approved: true }])
    expect(await update(ann, { inputResponses: { [key]: wrong } })).toMatchObject(invalid);
  // Not an answer to this question: ignored.
  for (const other of ['call-1', 'x', `${key}x`, '__proto__'])
    expect(await update(ann, { inputResponses: { [other]: accept } })).toMatchObject({ result: {} });
  expect(await update(ann, { inputResponses: { [key]: 'accept' } })).toMatchObject({ result: {} });
  expect(await update(served.as('bob'), { inputResponses: { [key]: accept } })).toMatchObject(invalid);
  expect(await update(served.as('reader'), { inputResponses: { [key]: accept } })).toMatchObject(invalid);
  const withoutTasks = served.as('ann', { elicitation: {} });
  expect(await update(withoutTasks, { inputResponses: { [key]: accept } })).toMatchObject({ error: { code: -32_021 } });
  expect(askedBy(await waitForTask(ann, taskId, 'input_required'))[0]).toBe(key);
  expect(served.ran).toEqual([]);
  expect(served.audited).toEqual([]);
});

test('an answer after a cancel runs nothing', async () => {
  await using served = await serve();
  const ann = served.as('ann');
  const taskId = await served.start(ann);
  const [key] = askedBy(await waitForTask(ann, taskId, 'input_required'));
  const inputResponses = { [key]: { action: 'accept' } };
  const [cancelled] = await Promise.all([ask(ann, 'tasks/cancel', { taskId }), ask(ann, 'tasks/cancel', { taskId })]);
  expect(cancelled).toMatchObject({ result: { resultType: 'complete' } });
  expect(await ask(ann, 'tasks/update', { taskId, inputResponses })).toMatchObject({ result: {} });
  expect(await waitForTask(ann, taskId, 'cancelled')).not.toHaveProperty('inputRequests');
  expect(served.ran).toEqual([]);
  expect(served.audited.map(({ type }) => type)).toEqual(['cancel', 'cancel']);
});

test.each([
  ['no elicitation', 'ann', { extensions: { [TASKS]: {} } }],
  ['only elicitation by URL', 'ann', { extensions: { [TASKS]: {} }, elicitation: { url: {} } }],
  ['no right to approve', 'reader', ASKING],
])('a host that cannot be asked (%s) sees a task that works, and how to approve it', async (_, user, capabilities) => {
  await using served = await serve();
  const host = served.as(user, capabilities);
  const taskId = await served.start(host);
  await waitForTask(served.as('ann'), taskId, 'input_required');
  const { result } = await ask(host, 'tasks/get', { taskId });
  expect(result).toMatchObject({ status: 'working', statusMessage: `waits for an answer: whoa approve ${taskId}` });
  expect(result).not.toHaveProperty('inputRequests');
});

test('our own MCP tools pass a task’s question to their approval', async () => {
  await using served = await serve();
  const transport = { type: 'http', url: served.url, headers: { 'x-user': 'ann' } } as const;
  const messages: string[] = [];
  await using mcp = await createMcpTools({
    name: 'whoa',
    transport,
    approve: ({ message }) => messages.push(message) === 2,
  });
  expect(await callTool(mcp.tools[0]!, { prompt: 'Clean up' })).toMatchObject({ state: 'finished', content: 'Done.' });
  expect(messages).toHaveLength(2);
  expect(served.ran).toEqual(['ls']);
});

test('a user may not answer for their own task where that is the rule; the host gets the reason, and another user can', async () => {
  await using served = await serve({ rules: { starterMayAnswer: false } });
  const taskId = await served.start(served.as('ann'));
  const [key] = askedBy(await waitForTask(served.as('ann'), taskId, 'input_required'));
  const update = (user: string) =>
    ask(served.as(user), 'tasks/update', { taskId, inputResponses: { [key]: { action: 'accept', content: {} } } });
  const refused = await update('ann');
  expect(JSON.stringify(refused)).toContain('You started this task');
  expect((await served.store.get({ tenant: 'acme', id: taskId }))?.startedBy).toBe('ann');
  expect(served.ran).toEqual([]);
  await update('cat');
  await waitForTask(served.as('ann'), taskId, 'input_required');
  expect(served.ran).toEqual(['rm -rf\n  dist']);
  expect(served.audited).toMatchObject([
    { actor: 'ann', result: 'refused', target: taskId, question: key, shown: expect.any(String) as string },
    { actor: 'cat', result: 'accepted', target: taskId, question: key, shown: expect.any(String) as string },
  ]);
});

test("an agent's own question is a form, and its content is the answer", async () => {
  const about = { description: 'Asks', inputSchema: z.object({}).loose(), answeredBy: 'user' as const };
  const tools = [
    defineTool({ ...about, name: 'when', answerSchema: z.object({ day: z.number() }) }),
    defineTool({ ...about, name: 'which', answerSchema: z.array(z.string()) }),
    defineTool({ ...about, name: 'why', answerSchema: z.string() }),
  ];
  const calls = tools.map(({ name: call }) => ({ ...CALL, call }));
  await using served = await serve({ tools: tools as Tool[], calls });
  const ann = served.as('ann');
  const taskId = await served.start(ann);
  for (const [name, fields, response] of [
    ['when', { day: { type: 'number' } }, { action: 'accept', content: { day: 3 } }],
    ['which', { answer: { type: 'string' } }, { action: 'accept', content: { answer: '["a","b"]' } }],
    ['why', { answer: { type: 'string' } }, { action: 'decline' }],
  ] as const) {
    const [key, { params }] = askedBy(await waitForTask(ann, taskId, 'input_required'));
    expect(params).toMatchObject({ message: expect.stringMatching(`^${name} asks:`) as string });
    expect(params.requestedSchema).toMatchObject({ type: 'object', properties: fields });
    await ask(ann, 'tasks/update', { taskId, inputResponses: { [key]: response } });
  }
  await waitForTask(ann, taskId, 'completed');
  const { questions } = (await served.store.get({ tenant: 'acme', id: taskId }))!;
  expect(questions!.map(({ answer }) => answer?.value)).toEqual([
    { answer: { day: 3 } },
    { answer: ['a', 'b'] },
    { error: 'the user declined to answer' },
  ]);
});
