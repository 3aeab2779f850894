// What other agents have been seen to do wrong, class by class; each is shown here not to happen.
import { once } from 'node:events';
import { methods } from '@agentclientprotocol/sdk';
import { createAgent, createAgentTool, defineTool, type Message, type Tool } from '@whoa/core';
import type { ModelRequest } from '@whoa/core/model';
import { createScriptedModel, createVirtualWorld, flushMicrotasks, type ScriptedStep } from '@whoa/core/testing';
import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { testTools } from '../../../test/acp/agent.ts';
import {
  choose,
  mute,
  type OnPermission,
  openEditor,
  openEditorV2,
  type RawMessage,
} from '../../../test/acp/editor.ts';
import { type InProcess, serveInProcess } from '../../../test/acp/in-process.ts';
import { anything } from '../../../test/acp/process-tree.ts';
import type { AcpOptions } from './options.ts';
import { createMemorySessions } from './store/memory.ts';

const opened: InProcess[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map(({ connection }) => connection.close()));
});

const never = new Promise<never>(() => {});

/** An agent with a scripted first reply; every later one is a word. It counts the executed calls. */
function createScriptedAgent(
  first: readonly ScriptedStep[],
  more: { compact?: () => Promise<readonly Message[]> } = {},
) {
  const executed: string[] = [];
  const model = createScriptedModel([first, ['Well.']]);
  const touch = defineTool({
    name: 'touch',
    description: '',
    inputSchema: anything,
    effects: 'write',
    execute: () => {
      executed.push('touch');
      return 'touched';
    },
  });
  const createSessionAgent: AcpOptions['createAgent'] = ({ approve }) =>
    createAgent({ name: 'test', model, tools: [...testTools('none'), touch] as Tool[], approve, ...more });
  return { executed, model, createAgent: createSessionAgent };
}

async function open(more: Partial<AcpOptions>, onPermission: OnPermission = mute) {
  const served = serveInProcess(more);
  opened.push(served);
  const editor = await openEditor(served.stream, { onPermission });
  const { agent, sessionId } = editor;
  const prompt = (text = 'go', id = sessionId) =>
    agent.request(methods.agent.session.prompt, { sessionId: id, prompt: [{ type: 'text', text }] });
  const cancel = (id = sessionId) => agent.notify(methods.agent.session.cancel, { sessionId: id });
  const asked = () => served.waitFor(({ method }) => method === 'session/request_permission');
  return { ...served, ...editor, prompt, cancel, asked };
}

/** The statuses that a client saw of each call, in order. */
function statuses(messages: readonly RawMessage[]): Record<string, unknown[]> {
  const seen: Record<string, unknown[]> = {};
  for (const { params } of messages) {
    const { toolCallId, status } = params?.update ?? {};
    if (typeof toolCallId === 'string' && status !== undefined) (seen[toolCallId] ??= []).push(status);
  }
  return seen;
}

/** Every call of a request has exactly one result. */
function openCalls({ messages }: ModelRequest): string[] {
  const calls = messages.flatMap((message) =>
    message.role === 'assistant' ? message.content.flatMap((part) => (part.type === 'call' ? [part.callId] : [])) : [],
  );
  const results = messages.flatMap((message) => (message.role === 'tool' ? [message.callId] : []));
  expect(new Set(results).size).toBe(results.length);
  return calls.filter((callId) => !results.includes(callId));
}

describe('a call runs after the cancel', () => {
  test('a call that a reply had asked for before it was cut off does not run', async () => {
    const { createAgent, executed } = createScriptedAgent([{ call: 'touch' }, 'and then ', { until: never }]);
    const { prompt, cancel, waitFor, messages } = await open({ createAgent }, choose('allow'));
    const answer = prompt();
    await waitFor((message) => JSON.stringify(message).includes('then '));
    await cancel();
    expect(await answer).toMatchObject({ stopReason: 'cancelled' });
    await prompt();
    expect(executed).toEqual([]);
    for (const seen of Object.values(statuses(messages))) expect(seen.at(-1)).toBe('failed');
  });

  test('the siblings of a call whose permission was answered with cancelled do not run', async () => {
    const { createAgent, executed } = createScriptedAgent([{ call: 'touch' }, { call: 'touch' }, { call: 'touch' }]);
    let questions = 0;
    const onPermission: OnPermission = () => {
      questions++;
      return Promise.resolve({ outcome: { outcome: 'cancelled' } });
    };
    const { prompt, messages } = await open({ createAgent }, onPermission);
    expect(await prompt()).toMatchObject({ stopReason: 'cancelled' });
    expect(executed).toEqual([]);
    expect(questions).toBeLessThanOrEqual(3);
    expect(Object.values(statuses(messages)).map((seen) => seen.at(-1))).toEqual(['failed', 'failed', 'failed']);
  });
});

describe('calls are left open', () => {
  test('running, asking and waiting calls are each closed once, before the response', async () => {
    const { createAgent } = createScriptedAgent([{ call: 'slow' }, { call: 'touch' }, { call: 'slow' }]);
    const { prompt, cancel, asked, messages } = await open({ createAgent });
    const answer = prompt();
    await asked();
    await cancel();
    expect(await answer).toMatchObject({ stopReason: 'cancelled' });
    const answered = messages.findIndex(({ result }) => result?.stopReason === 'cancelled');
    const seen = Object.values(statuses(messages.slice(0, answered)));
    expect(seen.map((one) => one.filter((status) => status === 'failed' || status === 'completed'))).toEqual([
      ['failed'],
      ['failed'],
      ['failed'],
    ]);
    expect(messages.slice(answered + 1).filter(({ method }) => method === 'session/update')).toEqual([]);
  });

  test('the next request has one result for every call, and the text so far', async () => {
    const { createAgent, model } = createScriptedAgent(['I begin. ', { call: 'slow' }, { call: 'touch' }]);
    const { prompt, cancel, asked } = await open({ createAgent });
    const answer = prompt();
    await asked();
    await cancel();
    await answer;
    expect(await prompt('and now?')).toMatchObject({ stopReason: 'end_turn' });
    const request = model.requests.at(-1)!;
    expect(openCalls(request)).toEqual([]);
    expect(JSON.stringify(request.messages)).toContain('I begin.');
  });
});

test('a question that is no longer needed is withdrawn from the client', async () => {
  const { createAgent } = createScriptedAgent([{ call: 'touch' }]);
  const { prompt, cancel, asked, messages } = await open({ createAgent });
  const answer = prompt();
  const { id } = await asked();
  await cancel();
  await answer;
  expect(messages.filter(({ method }) => method === '$/cancel_request')).toMatchObject([{ params: { requestId: id } }]);
});

test('a cancel while the history is compacted ends the prompt', async () => {
  const started = Promise.withResolvers<void>();
  const compact = (): Promise<never> => {
    started.resolve();
    return never;
  };
  const { createAgent, model } = createScriptedAgent(['Never said.'], { compact });
  const { prompt, cancel } = await open({ createAgent });
  const answer = prompt();
  await started.promise;
  await cancel();
  expect(await answer).toMatchObject({ stopReason: 'cancelled' });
  expect(model.requests).toEqual([]);
});

test('a cancel reaches the calls of a sub-agent, and its call is closed', async () => {
  const started = Promise.withResolvers<void>();
  let isStopped = false;
  const deep = defineTool({
    name: 'deep',
    description: '',
    inputSchema: anything,
    effects: 'read',
    async execute(_, { signal }) {
      started.resolve();
      await once(signal, 'abort');
      isStopped = true;
      return 'stopped';
    },
  });
  const child = createAgent({
    name: 'child',
    model: createScriptedModel([[{ call: 'deep' }]]),
    tools: [deep] as Tool[],
  });
  const tools = [createAgentTool(child, { name: 'delegate', description: 'Gives work away.' })] as Tool[];
  const model = createScriptedModel([[{ call: 'delegate', input: { task: 'all of it' } }], ['Well.']]);
  const { prompt, cancel, messages } = await open({ createAgent: () => createAgent({ name: 'parent', model, tools }) });
  const answer = prompt();
  await started.promise;
  await cancel();
  expect(await answer).toMatchObject({ stopReason: 'cancelled', _meta: { 'whoa/stopReport': { isClean: true } } });
  expect(isStopped).toBe(true);
  expect(Object.values(statuses(messages)).map((seen) => seen.at(-1))).toEqual(['failed']);
});

test('a cancel in one session leaves the other one alone', async () => {
  const { createAgent } = createScriptedAgent([]);
  const { agent, prompt, cancel, waitFor, sessionId, messages } = await open({
    createAgent: async (session) => {
      const made = await createAgent(session);
      const model = createScriptedModel([['one two ', { until: released.promise }, 'three']]);
      return { ...made, run: (input, options) => freshAgent(model).run(input, options) };
    },
  });
  const other = await agent.request(methods.agent.session.new, { cwd: '/tmp', mcpServers: [] });
  const [first, second] = [prompt('a'), prompt('b', other.sessionId)];
  for (const id of [sessionId, other.sessionId]) {
    await waitFor(({ params }) => params?.['sessionId'] === id && JSON.stringify(params).includes('two'));
  }
  await cancel();
  expect(await first).toMatchObject({ stopReason: 'cancelled' });
  expect(messages.filter(({ result }) => result?.stopReason !== undefined)).toHaveLength(1);
  released.resolve();
  expect(await second).toMatchObject({ stopReason: 'end_turn' });
});

const released = Promise.withResolvers<void>();
const freshAgent = (model: ReturnType<typeof createScriptedModel>) => createAgent({ name: 'test', model });

test('a cancel with extra metadata is not a request: it gets no response', async () => {
  const { createAgent } = createScriptedAgent(['one two three ', { until: never }]);
  const { agent, sessionId, prompt, waitFor, messages } = await open({ createAgent });
  const answer = prompt();
  await waitFor((message) => JSON.stringify(message).includes('three'));
  await agent.notify(methods.agent.session.cancel, { sessionId, _meta: { traceparent: '00-0-0-00' } });
  expect(await answer).toMatchObject({ stopReason: 'cancelled' });
  await agent.request(methods.agent.session.list, {});
  // Hello, session/new, the prompt, the list: four answers and none for the cancel.
  expect(messages.filter(({ method }) => method === undefined)).toHaveLength(4);
});

test('a session that is deleted while it runs is cancelled first, and does not come back', async () => {
  const store = createMemorySessions();
  const { createAgent } = createScriptedAgent(['one two three ', { until: never }]);
  const { agent, sessionId, prompt, waitFor, messages } = await open({ createAgent, store });
  const answer = prompt();
  await waitFor((message) => JSON.stringify(message).includes('three'));
  await agent.request(methods.agent.session.delete, { sessionId });
  expect(await answer).toMatchObject({ stopReason: 'cancelled' });
  const order = messages.flatMap(({ method, result }) => (method === undefined ? [result?.stopReason] : []));
  expect(order.slice(-2)).toEqual(['cancelled', undefined]);
  expect(await store.list()).toEqual({ sessions: [] });
});

test('a setting that is changed while a prompt runs neither ends it nor keeps it from being cancelled', async () => {
  const { createAgent } = createScriptedAgent(['one two three ', { until: never }]);
  const { agent, sessionId, prompt, cancel, waitFor } = await open({ createAgent });
  const answer = prompt();
  await waitFor((message) => JSON.stringify(message).includes('three'));
  await agent.request(methods.agent.session.setConfigOption, { sessionId, configId: 'model', value: 'b' });
  await cancel();
  expect(await answer).toMatchObject({ stopReason: 'cancelled' });
  expect(await prompt('again')).toMatchObject({ stopReason: 'end_turn' });
});

test('a store that never responds delays a cancelled prompt by two seconds at most', async () => {
  const world = createVirtualWorld();
  const store = { ...createMemorySessions(), save: () => never };
  const problems: unknown[] = [];
  const { createAgent } = createScriptedAgent(['one two three ', { until: never }]);
  const onError = (error: unknown) => problems.push(error);
  const { prompt, cancel, waitFor, messages } = await open({ createAgent, store, world, onError });
  const answer = prompt();
  await waitFor((message) => JSON.stringify(message).includes('three'));
  await cancel();
  const isAnswered = () => messages.some(({ result }) => result?.stopReason !== undefined);
  for (let seconds = 0; seconds < 5 && !isAnswered(); seconds++) {
    await flushMicrotasks();
    await world.clock.advance(1_000);
    await flushMicrotasks();
  }
  expect(await answer).toMatchObject({ stopReason: 'cancelled' });
  expect(problems).not.toEqual([]);
});

describe('a session that takes for ever to open', () => {
  function slowToOpen() {
    const started = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<void>();
    let isFirst = true;
    const createAgent: AcpOptions['createAgent'] = (session) => {
      if (isFirst) {
        isFirst = false;
        return createScriptedAgent([]).createAgent(session);
      }
      started.resolve();
      return new Promise((_, reject) => {
        session.token.onCancel(() => {
          ended.resolve();
          reject(new Error('no longer needed'));
        });
      });
    };
    return { createAgent, started: started.promise, ended: ended.promise };
  }
  const request = { cwd: '/tmp', mcpServers: [] };

  test('opening a session is abandoned when the client cancels its request, and resources that it opened are reported', async () => {
    const { createAgent, started, ended } = slowToOpen();
    const { agent, prompt } = await open({ createAgent });
    const taken = new AbortController();
    const answer = agent.request(methods.agent.session.new, request, { cancellationSignal: taken.signal });
    await started;
    taken.abort();
    await expect(answer).rejects.toMatchObject({ code: -32800 });
    await ended;
    expect(await prompt()).toMatchObject({ stopReason: 'end_turn' });
  });

  test('opening a session is abandoned when the client has gone', async () => {
    const { createAgent, started, ended } = slowToOpen();
    const { agent, input } = await open({ createAgent });
    const answer = agent.request(methods.agent.session.new, request);
    answer.catch(() => {});
    await started;
    input.end();
    await ended;
    expect(await opened[0]!.connection.closed).toEqual({ by: 'client' });
  });
});

test('in version 2 the idle state that confirms the cancel is the last one', async () => {
  const { createAgent } = createScriptedAgent(['I begin. ', { call: 'slow' }]);
  const served = serveInProcess({ createAgent });
  opened.push(served);
  const { agent, sessionId } = await openEditorV2(served.stream);
  onTestFinished(() => served.connection.close().then(() => {}));
  await agent.request('session/prompt', { sessionId, prompt: [{ type: 'text', text: 'go' }] });
  await served.waitFor(({ params }) => params?.update?.['status'] === 'in_progress');
  await agent.notify('session/cancel', { sessionId });
  await agent.notify('session/cancel', { sessionId });
  await served.waitFor(({ params }) => params?.update?.['state'] === 'idle');
  await agent.request('session/list', {});
  const states = served
    .updates()
    .flatMap(({ state, stopReason }) => (state === undefined ? [] : [[state, stopReason]]));
  expect(states.at(-1)).toEqual(['idle', 'cancelled']);
  expect(states.filter(([state]) => state === 'idle')).toHaveLength(1);
});
