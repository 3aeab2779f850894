import { PassThrough } from 'node:stream';
import { type LoadSessionResponse, methods } from '@agentclientprotocol/sdk';
import { createAgent, createAgentTool, defineTool, type Json, type Tool } from '@whoa/core';
import { createScriptedModel, createVirtualWorld, flushMicrotasks } from '@whoa/core/testing';
import { afterEach, expect, test } from 'vitest';
import { testAgent } from '../../../../test/acp/agent.ts';
import { choose, mute, type OnPermission, openEditor, watchMessages } from '../../../../test/acp/editor.ts';
import { type InProcess, serveInProcess } from '../../../../test/acp/in-process.ts';
import { anything } from '../../../../test/acp/process-tree.ts';
import type { AcpOptions, AcpSession } from '../options.ts';
import { serveAcp } from '../serve.ts';
import { createMemorySessions } from '../store/memory.ts';

const opened: InProcess[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map(({ connection }) => connection.close()));
});

async function open(more: Partial<AcpOptions> = {}, onPermission: OnPermission = mute) {
  const served = serveInProcess(more);
  opened.push(served);
  const editor = await openEditor(served.stream, { onPermission });
  const { agent, sessionId } = editor;
  const prompt = (text: string) =>
    agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: 'text', text }] });
  const call = (status: string) => served.waitFor(({ params }) => params?.update?.['status'] === status);
  const ends = () => served.updates().filter(({ status }) => status === 'completed' || status === 'failed');
  return { ...served, ...editor, prompt, call, ends };
}

test('initialize returns the capabilities and at least one authentication method', async () => {
  const { messages } = await open();
  expect(messages[0]?.result).toMatchObject({
    protocolVersion: 1,
    agentInfo: { name: 'test-agent', title: 'Test agent', version: '1.2.3' },
    authMethods: [{ id: 'environment' }],
    agentCapabilities: {
      loadSession: true,
      mcpCapabilities: { http: true },
      sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {} },
      _meta: { 'whoa/cancelCall': { method: '_whoa/tool_call/cancel' } },
    },
  });
});

test('a prompt gets its response after its text and its usage', async () => {
  const { prompt, updates } = await open();
  expect(await prompt('hello')).toMatchObject({
    stopReason: 'end_turn',
    _meta: { 'whoa/usage': { isComplete: true } },
  });
  // On a busy machine the words come in several pieces.
  const kinds = updates().map((update) => update['sessionUpdate']);
  expect(kinds.filter((kind, i) => kind !== kinds[i - 1])).toEqual([
    'session_info_update',
    'agent_message_chunk',
    'usage_update',
  ]);
});

test('usage after a cancel is the reported usage, marked as incomplete', async () => {
  const { agent, sessionId, prompt, waitFor } = await open();
  const answer = prompt('talk');
  await waitFor((message) => JSON.stringify(message).includes('three'));
  await agent.notify(methods.agent.session.cancel, { sessionId });
  expect(await answer).toMatchObject({
    _meta: {
      'whoa/usage': { isComplete: false, inputTokens: expect.toSatisfy((count: number) => count > 0) as number },
    },
  });
});

test('a failure is an error that explains what to do, with every call closed', async () => {
  const { prompt } = await open();
  await expect(prompt('fail')).rejects.toMatchObject({
    code: -32603,
    message: expect.stringContaining('try again later') as string,
  });
});

test('a yes lets a call run, a no does not, and always means always', async () => {
  const yes = await open({}, choose('allow'));
  await yes.prompt('ask');
  expect(yes.ends()).toMatchObject([{ status: 'completed', content: [{ content: { text: 'written' } }] }]);

  const no = await open({}, choose('reject'));
  await no.prompt('ask');
  expect(no.ends()).toMatchObject([{ status: 'failed' }]);

  const always = await open({}, choose('allow-always'));
  await always.prompt('ask');
  await always.prompt('ask');
  expect(always.ends()).toHaveLength(2);
  expect(always.messages.filter(({ method }) => method === 'session/request_permission')).toHaveLength(1);
});

test('a sub-agent asks with the approval of its parent, about a call that the editor knows and sees end', async () => {
  const ran: string[] = [];
  const calling = (name: string) =>
    createScriptedModel([[{ call: name, input: { task: 'write' }, id: `${name}-1` }], ['Done.']]);
  const { prompt, updates, messages } = await open(
    {
      createAgent: ({ approve }) => {
        const write = defineTool({
          name: 'write',
          description: 'Writes',
          inputSchema: anything,
          execute: () => String(ran.push('write')),
        });
        const helper = createAgent({ name: 'helper', model: calling('write'), tools: [write as Tool] });
        const tools = [createAgentTool(helper, { description: 'Helps' }) as Tool];
        return createAgent({ name: 'lead', model: calling('helper'), tools, approve });
      },
    },
    choose('allow'),
  );
  expect(await prompt('go')).toMatchObject({ stopReason: 'end_turn' });
  const asked = messages.filter(({ method }) => method === 'session/request_permission');
  const shown = asked.map(({ params }) => (params as { toolCall?: { toolCallId: string; title: string } }).toolCall);
  expect(shown).toMatchObject([
    { toolCallId: 'helper-1', title: 'helper' },
    { toolCallId: 'helper-1', title: 'helper › write' },
  ]);
  expect(ran).toEqual(['write']);
  const calls = updates().filter(({ toolCallId }) => toolCallId !== undefined);
  expect(new Set(calls.map(({ toolCallId }) => toolCallId))).toEqual(new Set(['helper-1']));
  expect(calls.at(-1)).toMatchObject({ status: 'completed' });
});

test('an unknown answer, or an error, does not count as a yes', async () => {
  const unknown = await open({}, choose('sudo'));
  await unknown.prompt('ask');
  expect(unknown.ends()).toMatchObject([{ status: 'failed' }]);
  const broken = await open({}, () => Promise.reject(new Error('the dialog broke')));
  await broken.prompt('ask');
  expect(broken.ends()).toMatchObject([{ status: 'failed' }]);
});

test('a permission answered with cancelled cancels the prompt', async () => {
  const { prompt } = await open({}, () => Promise.resolve({ outcome: { outcome: 'cancelled' } }));
  expect(await prompt('ask')).toMatchObject({ stopReason: 'cancelled' });
});

test('a yes that comes after the cancel does not let the call run', async () => {
  const late = Promise.withResolvers<{ outcome: { outcome: 'selected'; optionId: string } }>();
  const { agent, sessionId, prompt, waitFor, ends } = await open({}, () => late.promise);
  const answer = prompt('ask');
  await waitFor(({ method }) => method === 'session/request_permission');
  await agent.notify(methods.agent.session.cancel, { sessionId });
  late.resolve({ outcome: { outcome: 'selected', optionId: 'allow' } });
  expect(await answer).toMatchObject({ stopReason: 'cancelled' });
  expect(ends()).toMatchObject([{ status: 'failed', rawOutput: { cancelled: true, state: 'not-started' } }]);
});

test('a single call can be stopped, by a method that initialize announces', async () => {
  const { agent, sessionId, prompt, call, ends } = await open();
  const answer = prompt('slow');
  const { toolCallId, _meta } = (await call('in_progress')).params!.update!;
  expect(_meta).toEqual({ 'whoa/cancelCall': true });
  const stop = () => agent.request('_whoa/tool_call/cancel', { sessionId, toolCallId });
  expect(await stop()).toEqual({});
  expect(await answer).toMatchObject({ stopReason: 'end_turn' });
  expect(ends()).toMatchObject([{ status: 'failed', _meta: { 'whoa/cancelled': { state: 'interrupted' } } }]);
  await expect(stop()).rejects.toMatchObject({ code: -32602 });
  await expect(agent.request('_whoa/tool_call/cancel', {})).rejects.toMatchObject({ code: -32602 });
});

test('an edit is reported with its diff, its location and its details', async () => {
  const { prompt, ends } = await open();
  await prompt('edit');
  expect(ends()).toMatchObject([
    {
      locations: [{ path: '/tmp/src/a.txt', line: 2 }],
      content: [{ type: 'diff', path: '/tmp/src/a.txt', oldText: 'a\nb\n', newText: 'a\nc\n' }, { type: 'content' }],
      rawOutput: { path: 'src/a.txt' },
    },
  ]);
});

test('a deadline cancels the prompt like everything else', async () => {
  const { prompt } = await open({ promptTimeoutMs: 20 });
  expect(await prompt('slow')).toMatchObject({
    stopReason: 'cancelled',
    _meta: { 'whoa/stopReport': { reason: { kind: 'deadline' }, calls: [{ state: 'interrupted' }] } },
  });
});

test('a session that is loaded shows its history; one that is resumed does not; both remember it', async () => {
  const store = createMemorySessions();
  const first = await open({ store });
  await first.prompt('hello');
  await first.prompt('edit');
  const { sessionId } = first;

  const second = await open({ store });
  const request = { sessionId, cwd: '/tmp', mcpServers: [] };
  await second.agent.request(methods.agent.session.resume, request);
  expect(second.updates()).toEqual([]);
  const third = await open({ store });
  const loaded: LoadSessionResponse = await third.agent.request(methods.agent.session.load, request);
  expect(loaded.configOptions).toMatchObject([{ id: 'model', currentValue: 'a' }]);
  expect(third.updates()).toMatchObject([
    { sessionUpdate: 'user_message_chunk', content: { text: 'hello' } },
    { sessionUpdate: 'agent_message_chunk', content: { text: 'You said: hello' } },
    { sessionUpdate: 'user_message_chunk', content: { text: 'edit' } },
    { sessionUpdate: 'tool_call', status: 'pending' },
    { sessionUpdate: 'tool_call_update', status: 'completed' },
    { sessionUpdate: 'agent_message_chunk' },
  ]);
  expect(await third.agent.request(methods.agent.session.list, {})).toMatchObject({ sessions: [{ title: 'hello' }] });
});

test('a session that is loaded while it runs continues, and can still be cancelled', async () => {
  const { agent, sessionId, prompt, call, updates } = await open();
  const answer = prompt('slow');
  await call('in_progress');
  const before = updates().length;
  await agent.request(methods.agent.session.load, { sessionId, cwd: '/tmp', mcpServers: [] });
  expect(updates().slice(before)).toMatchObject([
    { sessionUpdate: 'user_message_chunk' },
    { sessionUpdate: 'agent_message_chunk' },
    { sessionUpdate: 'tool_call', status: 'in_progress' },
  ]);
  await agent.notify(methods.agent.session.cancel, { sessionId });
  expect(await answer).toMatchObject({ stopReason: 'cancelled' });
});

test('unknown sessions, relative paths and foreign cursors are rejected', async () => {
  const { agent } = await open();
  const request = { cwd: '/tmp', mcpServers: [] };
  const { session } = methods.agent;
  for (const sessionId of ['nobody', '../../etc/passwd', '']) {
    await expect(agent.request(session.load, { sessionId, ...request })).rejects.toMatchObject({ code: -32002 });
    await expect(agent.request(session.prompt, { sessionId, prompt: [] })).rejects.toMatchObject({ code: -32002 });
  }
  await expect(agent.request(session.new, { cwd: 'here', mcpServers: [] })).rejects.toMatchObject({ code: -32602 });
  await expect(agent.request(session.list, { cursor: 'x' })).rejects.toMatchObject({ code: -32602 });
});

test('a changed setting gives the next prompt an agent made with it, and lets go of the old one', async () => {
  const made: string[] = [];
  const closed: string[] = [];
  const { agent, sessionId, prompt } = await open({
    createAgent({ settings, defer }) {
      const model = settings['model'] ?? '';
      made.push(model);
      defer(() => closed.push(model));
      return createAgent({ name: model, model: createScriptedModel([['ok']]) });
    },
  });
  await prompt('hello');
  const { configOptions } = await agent.request(methods.agent.session.setConfigOption, {
    sessionId,
    configId: 'model',
    value: 'b',
  });
  expect(configOptions).toMatchObject([{ currentValue: 'b' }]);
  await prompt('hello');
  expect({ made, closed }).toEqual({ made: ['a', 'b'], closed: ['a'] });
});

test('the run of a prompt is started by the option, with the history and the token of the prompt', async () => {
  const started: { input: unknown; messages: number | undefined; isCancelled: boolean }[] = [];
  const { prompt } = await open({
    createAgent: () => createAgent({ name: 'a', model: createScriptedModel([['ok']]) }),
    startRun(agent, input, options) {
      started.push({ input, messages: options.history?.length, isCancelled: options.token.isCancelled });
      return agent.run('something else', options);
    },
  });
  await prompt('hello');
  await prompt('again');
  expect(started).toEqual([
    { input: 'hello', messages: 0, isCancelled: false },
    { input: 'again', messages: 2, isCancelled: false },
  ]);
});

test('an agent gets its folder, its servers and the files of the client, and a missing key makes the editor ask for it', async () => {
  const sessions: AcpSession[] = [];
  const served = serveInProcess({
    createAgent(session) {
      sessions.push(session);
      if (session.cwd === '/locked') throw Object.assign(new Error('set ANTHROPIC_API_KEY'), { code: 'AUTH_REQUIRED' });
      return createAgent({ name: 'a', model: createScriptedModel([['ok']]) });
    },
  });
  opened.push(served);
  const { agent } = await openEditor(served.stream);
  const stdio = { name: 's', command: '/bin/s', args: ['-x'], env: [{ name: 'A', value: '1' }] };
  const http = { type: 'http' as const, name: 'h', url: 'http://localhost:1', headers: [{ name: 'B', value: '2' }] };
  await agent.request(methods.agent.session.new, { cwd: '/tmp', mcpServers: [stdio, http] });
  expect(sessions[1]).toMatchObject({
    cwd: '/tmp',
    files: {},
    mcpServers: [
      { type: 'stdio', command: '/bin/s', args: ['-x'], env: { A: '1' } },
      { type: 'http', url: 'http://localhost:1', headers: { B: '2' } },
    ],
  });
  const locked = agent.request(methods.agent.session.new, { cwd: '/locked', mcpServers: [] });
  await expect(locked).rejects.toMatchObject({
    code: -32000,
    message: expect.stringContaining('set ANTHROPIC_API_KEY') as string,
  });
});

test('further folders are offered and passed on only if the agent uses them', async () => {
  const more = { cwd: '/tmp', additionalDirectories: ['/usr'], mcpServers: [] };
  const one = await open();
  expect(JSON.stringify(one.messages[0])).not.toContain('additionalDirectories');
  await expect(one.agent.request(methods.agent.session.new, more)).rejects.toMatchObject({
    code: -32602,
    message: expect.stringContaining('works in one folder') as string,
  });
  const load = one.agent.request(methods.agent.session.load, { sessionId: one.sessionId, ...more });
  await expect(load).rejects.toMatchObject({ code: -32602 });
  const folders: (readonly string[])[] = [];
  const several = await open({
    additionalDirectories: true,
    createAgent({ additionalDirectories }) {
      folders.push(additionalDirectories);
      return createAgent({ name: 'a', model: createScriptedModel([['ok']]) });
    },
  });
  const capabilities = { sessionCapabilities: { additionalDirectories: {} } };
  expect(several.messages[0]?.result).toMatchObject({ agentCapabilities: capabilities });
  await several.agent.request(methods.agent.session.new, more);
  expect(folders).toEqual([[], ['/usr']]);
});

test('a notice for the user is shown once, before the next answer', async () => {
  const { prompt, updates } = await open({
    createAgent({ notify }) {
      notify('The server is down.');
      return createAgent({ name: 'a', model: createScriptedModel([['ok']]) });
    },
  });
  expect(updates()).toEqual([]);
  await prompt('hello');
  await prompt('again');
  const texts = updates().filter(({ sessionUpdate }) => sessionUpdate === 'agent_message_chunk');
  expect(texts).toMatchObject([
    { messageId: 'm0-notice', content: { text: 'The server is down.\n\n' } },
    { messageId: 'm1', content: { text: 'ok' } },
    { messageId: 'm3', content: { text: 'ok' } },
  ]);
});

test('an unknown setting or method of authentication is rejected with those that exist', async () => {
  const { agent, sessionId } = await open({ settings: [] });
  const { session, authenticate } = methods.agent;
  const chosen = agent.request(session.setConfigOption, { sessionId, configId: 'x', value: 'y' });
  await expect(chosen).rejects.toThrow('this agent has no settings');
  const entered = agent.request(authenticate, { methodId: 'x' });
  await expect(entered).rejects.toThrow("unknown method 'x'; use environment");
});

test('a plan that a tool made is shown', async () => {
  const { agent, sessionId, prompt, waitFor } = await open();
  const answer = prompt('plan');
  const shown = await waitFor(({ params }) => params?.update?.['sessionUpdate'] === 'plan');
  expect(shown.params?.update).toMatchObject({
    entries: [{ content: 'first', status: 'in_progress', priority: 'medium' }],
  });
  await agent.notify(methods.agent.session.cancel, { sessionId });
  expect(await answer).toMatchObject({ stopReason: 'cancelled' });
});

test('the files of a client that offers them are read and written through it', async () => {
  const files = new Map([['/tmp/a.txt', 'unsaved']]);
  const sessions: AcpSession[] = [];
  const served = serveInProcess({
    createAgent(session) {
      sessions.push(session);
      return createAgent({ name: 'a', model: createScriptedModel([['ok']]) });
    },
  });
  opened.push(served);
  await openEditor(served.stream, { files });
  const { readText, writeText } = sessions[0]!.files;
  const { signal } = new AbortController();
  expect(await readText?.('/tmp/a.txt', { line: 1, limit: 2, signal })).toBe('unsaved');
  await writeText?.('/tmp/a.txt', 'changed', { signal });
  expect(files.get('/tmp/a.txt')).toBe('changed');
});

test('a way in through a terminal is announced, and is not asked for by a message', async () => {
  const login = { id: 'login', name: 'Log in', terminal: { args: ['login'], env: { A: '1' } } };
  const { agent, messages } = await open({ authMethods: [login] });
  expect(messages[0]?.result?.['authMethods']).toEqual([
    { type: 'terminal', id: 'login', name: 'Log in', args: ['login'], env: { A: '1' } },
  ]);
  await expect(agent.request(methods.agent.authenticate, { methodId: 'login' })).rejects.toMatchObject({
    code: -32602,
  });
});

test('a result that is not JSON costs its update, not the connection', async () => {
  const problems: unknown[] = [];
  const cyclic: { self?: unknown } = {};
  cyclic.self = cyclic;
  const tool = defineTool({
    name: 'odd',
    description: '',
    effects: 'read',
    inputSchema: anything,
    execute: () => ({ content: 'ok', details: cyclic as Json }),
  });
  const { prompt } = await open({
    createAgent: () =>
      createAgent({ name: 'a', model: createScriptedModel([[{ call: 'odd' }], ['done']]), tools: [tool] }),
    onError: (error) => problems.push(error),
  });
  expect(await prompt('go')).toMatchObject({ stopReason: 'end_turn' });
});

test('a store that fails is reported, and the prompt is answered', async () => {
  const problems: unknown[] = [];
  const store = { ...createMemorySessions(), save: () => Promise.reject(new Error('disk full')) };
  const { prompt } = await open({ store, onError: (error) => problems.push(error) });
  expect(await prompt('hello')).toMatchObject({ stopReason: 'end_turn' });
  expect(problems).toContainEqual(new Error('disk full'));
});

test('a client that reads nothing does not keep us from ending', async () => {
  const world = createVirtualWorld();
  const store = createMemorySessions();
  const [input, output] = [new PassThrough(), new PassThrough({ highWaterMark: 1 })];
  const connection = serveAcp(testAgent('none', { world, store }), { input, output });
  const { waitFor } = watchMessages(output);
  const say = (message: object): boolean => input.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  say({ id: 1, method: 'initialize', params: { protocolVersion: 1 } });
  await waitFor(({ id }) => id === 1);
  say({ id: 2, method: 'session/new', params: { cwd: '/tmp', mcpServers: [] } });
  const { result } = await waitFor(({ id }) => id === 2);
  output.pause();
  const sessionId = result!['sessionId'] as string;
  say({ id: 3, method: 'session/prompt', params: { sessionId, prompt: [{ type: 'text', text: 'talk' }] } });
  // It keeps writing, and no one reads.
  while (!output.writableNeedDrain) await flushMicrotasks();
  const closed = connection.close();
  await world.clock.advance(5_000);
  expect(await closed).toMatchObject({ by: 'error' });
  expect(world.clock.pending).toBe(0);
  // The text is kept anyway.
  expect((await store.load(sessionId))?.messages).toMatchObject([{ content: 'talk' }, { stopReason: 'aborted' }]);
});
