// Commands of a page whose responses are lost: each is sent until one arrives, and takes effect once.
/* oxlint-disable typescript/no-deprecated -- what applications have */
import { createOpenAI } from '@ai-sdk/openai';
import { type ScriptedResponse, startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { createAgent, defineTool, type Tool } from '@whoa/core';
import { createScriptedModel } from '@whoa/core/testing';
import { createMemoryStore, createTaskApprovals } from '@whoa/tasks';
import { isToolUIPart, streamText, tool, type UIMessage, type UIMessageChunk } from 'ai';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { read, say, toReplyText } from '../../../../test/server/chat-harness.ts';
import { createChatHandler } from './chat-handler.ts';
import { StoppableChatTransport } from './client/stoppable-chat-transport.ts';

const KINDS = ['reply', 'agent'] as const;
type Kind = (typeof KINDS)[number];

const API = 'http://app.test/api/chat';
const PAYING = ['p1', 'p2'];

/** Calls by what the user says, and words when they have results. */
function scriptFor(said: string, hasResult: boolean): ScriptedResponse {
  if (hasResult) return { parts: [{ text: 'Done.' }] };
  if (said.includes('pay twice')) return { parts: PAYING.map((id) => ({ call: 'pay', id, input: { id } })) };
  if (said.includes('pay')) return { parts: [{ call: 'pay', id: 'p1', input: { id: 'p1' } }] };
  if (said.includes('where')) return { parts: [{ call: 'locate', id: 'l1', input: {} }] };
  if (said.includes('long')) return { parts: [{ text: ['long ', { stall: true }] }] };
  return { parts: [{ text: 'Hello.' }] };
}

async function openSite(kind: Kind) {
  const stack = new AsyncDisposableStack();
  const paid: string[] = [];
  const provider = await startLoopbackProvider({
    script: ({ body }) => {
      const messages = body['messages'] as { role: string; content: unknown }[];
      const last = messages.findLastIndex(({ role }) => role === 'user');
      return scriptFor(
        JSON.stringify(messages[last]),
        messages.slice(last).some(({ role }) => role === 'tool'),
      );
    },
  });
  stack.defer(() => provider.close());
  const store = stack.use(createMemoryStore());
  const approvals = createTaskApprovals({ parkAfterMs: 0 });
  const inputSchema = z.object({ id: z.string() });
  const execute = ({ id }: { id: string }) => {
    paid.push(id);
    return `paid ${id}`;
  };
  let user: string | undefined = 'ada';
  const shared = { store, authenticate: () => user };
  const createReply = () =>
    createChatHandler({
      ...shared,
      tools: {
        pay: tool({ inputSchema, needsApproval: true, execute }),
        locate: tool({ inputSchema: z.object({}), outputSchema: z.string() }),
      },
      reply: (turn) =>
        streamText({ model: createOpenAI({ baseURL: provider.url, apiKey: 'x' }).chat('gpt-4o'), ...turn }),
    });
  const pay = defineTool({ name: 'pay', description: 'Pays', inputSchema, effects: 'write', execute });
  const about = { description: 'Asks the page', inputSchema: z.object({}), effects: 'read' } as const;
  const locate = defineTool({ ...about, name: 'locate', answeredBy: 'client' });
  const calls = PAYING.map((id) => ({ call: 'pay', id, input: { id } }));
  const model = createScriptedModel([calls, ['Done.']]);
  const createAgentHandler = () =>
    createChatHandler({
      ...shared,
      approvals,
      agent: createAgent({ name: 'payer', model, tools: [pay, locate] as Tool[], approve: approvals.approve }),
    });
  const handler = stack.use(kind === 'reply' ? createReply() : createAgentHandler());
  const sent = new Map<string, number>();
  const requests: string[] = [];
  const network = { lost: 0, isDown: false };
  const fetch = (async (url: string, init: RequestInit = {}) => {
    const name = `${init.method ?? 'GET'} ${url.slice(API.length)}`;
    if (network.isDown) throw new TypeError('fetch failed');
    requests.push(name);
    const response = await handler.fetch(new Request(url, init));
    const command = `${name} ${init.body as string}`;
    const count = (sent.get(command) ?? 0) + 1;
    sent.set(command, count);
    if (init.method !== 'POST' || count > network.lost) return response;
    await response.body?.cancel();
    throw new TypeError('fetch failed');
  }) as typeof globalThis.fetch;
  const transport = new StoppableChatTransport({ api: API, fetch });
  // Nothing waits for the next try.
  transport.onChange(() => setImmediate(() => transport.retryNow()));
  const send = (messages: UIMessage[], trigger: 'submit-message' | 'regenerate-message' = 'submit-message') =>
    transport.sendMessages({ trigger, chatId: 'c', messageId: undefined, abortSignal: undefined, messages });
  return {
    provider,
    store,
    paid,
    requests,
    network,
    transport,
    send,
    logIn: (name: string | undefined) => (user = name),
    /** How often each command arrived. */
    repeats: () => [...sent].filter(([name]) => name.startsWith('POST')).map(([, count]) => count),
    stored: async () => (await (await handler.fetch(new Request(`${API}/c/messages`))).json()) as UIMessage[],
    tasks: async () => (await store.list({ tenant: 'ada', conversation: 'c' })).tasks,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

type Site = Awaited<ReturnType<typeof openSite>>;

/** Sends a message and reads to the end of its stream. */
async function asked(site: Site, text: string): Promise<UIMessage> {
  const { message } = await read(await site.send([say('u1', text)]));
  return message!;
}

/** Sends a message and returns when its reply has begun. */
async function startReply(site: Site): Promise<void> {
  const started = Promise.withResolvers<void>();
  const onChunk = ({ type }: UIMessageChunk) => type === 'text-delta' && started.resolve();
  const reading = read(await site.send([say('u1', 'long')]), onChunk);
  await started.promise;
  reading.catch(() => {});
}

/** The message as the page has it when one of its calls is answered. */
function answered(message: UIMessage, call: string, end: object): UIMessage {
  const parts = message.parts.map((part) => {
    if (!isToolUIPart(part) || part.toolCallId !== call) return part;
    const approved = { state: 'approval-responded', approval: { ...part.approval, approved: true } };
    return { ...part, ...('output' in end ? { state: 'output-available' } : approved), ...end };
  });
  return { ...message, parts: parts as never };
}

const calls = (message: UIMessage | undefined) => (message?.parts ?? []).filter(isToolUIPart);

/** Resolves when the last stored message has these words. */
async function untilSaid(site: Site, words: string): Promise<UIMessage> {
  for (;;) {
    const last = (await site.stored()).at(-1);
    if (toReplyText(last) === words) return last!;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

describe('each command is sent three times, and takes effect once', () => {
  async function open(kind: Kind = 'reply') {
    const site = await openSite(kind);
    site.network.lost = 2;
    return site;
  }

  test('a message', async () => {
    await using site = await open();
    const { message } = await read(await site.send([say('u1', 'Hi')]));
    expect(toReplyText(message)).toBe('Hello.');
    expect((await site.stored()).map(({ role }) => role)).toEqual(['user', 'assistant']);
    expect([site.repeats(), site.provider.requests.length]).toEqual([[3], 1]);
  });

  test('a stop of a reply', async () => {
    await using site = await open();
    await startReply(site);
    const receipt = await site.transport.stop('c');
    expect(['accepted', 'unchanged']).toContain(receipt.result);
    expect((await site.tasks()).map(({ status }) => status)).toEqual(['cancelled']);
    expect(site.repeats()).toEqual([3, 3]);
  });

  test('a stop of a question', async () => {
    await using site = await open();
    const { id } = await asked(site, 'pay');
    expect(await site.transport.stop('c', { waiting: id })).toMatchObject({ result: 'unchanged', message: { id } });
    expect(calls((await site.stored()).at(-1))).toMatchObject([{ state: 'output-error' }]);
    expect(site.repeats()).toEqual([3, 3]);
  });

  test('a yes', async () => {
    await using site = await open();
    const message = await asked(site, 'pay');
    await site.transport.answer('c', answered(message, 'p1', {}));
    await untilSaid(site, 'Done.');
    expect([site.paid, site.repeats(), site.provider.requests.length]).toEqual([['p1'], [3, 3], 2]);
  });

  test('the output of a tool of the page', async () => {
    await using site = await open();
    const message = await asked(site, 'where');
    await site.transport.answer('c', answered(message, 'l1', { output: 'Oslo' }));
    await untilSaid(site, 'Done.');
    expect([site.repeats(), site.provider.requests.length]).toEqual([[3, 3], 2]);
  });

  test('a regenerate', async () => {
    await using site = await open();
    const old = await asked(site, 'Hi');
    const { message } = await read(await site.send([say('u1', 'Hi')], 'regenerate-message'));
    expect(toReplyText(message)).toBe('Hello.');
    const stored = await site.stored();
    expect(stored.map(({ id }) => id)).toEqual(['u1', message!.id]);
    expect(message!.id).not.toBe(old.id);
    expect([site.repeats(), site.provider.requests.length]).toEqual([[3, 3], 2]);
  });

  test('a rollback of a reply', async () => {
    await using site = await open();
    await startReply(site);
    expect(await site.transport.stop('c', { rollback: true })).toMatchObject({ rolledBack: true });
    expect([await site.stored(), site.repeats()]).toEqual([[], [3, 3]]);
  });

  test('a rollback of a question', async () => {
    await using site = await open();
    const { id } = await asked(site, 'pay');
    expect(await site.transport.stop('c', { waiting: id, rollback: true })).toMatchObject({ rolledBack: true });
    expect([await site.stored(), site.repeats()]).toEqual([[], [3, 3]]);
  });
});

describe.each(KINDS)('two answers (%s)', (kind) => {
  test.for([0, 5, 50])('%s ms apart, each response lost once: both take effect', async (gapMs) => {
    await using site = await openSite(kind);
    const message = await asked(site, 'pay twice');
    site.network.lost = 1;
    const first = answered(message, 'p1', {});
    const sent = site.transport.answer('c', first);
    if (gapMs > 0) await new Promise((resolve) => setTimeout(resolve, gapMs));
    await Promise.all([sent, site.transport.answer('c', answered(first, 'p2', {}))]);
    await untilSaid(site, 'Done.');
    expect(site.paid.toSorted()).toEqual(PAYING);
    expect(calls((await site.stored()).at(-1))).toMatchObject([
      { state: 'output-available' },
      { state: 'output-available' },
    ]);
  });
});

test('a stop goes first: a message whose run was stopped before it arrives is stored without a reply', async () => {
  await using site = await openSite('reply');
  site.network.isDown = true;
  const leaving = new AbortController();
  const options = {
    trigger: 'submit-message',
    chatId: 'c',
    messageId: undefined,
    messages: [say('u1', 'Hi')],
  } as const;
  const reading = site.transport.sendMessages({
    ...options,
    messages: [...options.messages],
    abortSignal: leaving.signal,
  });
  const stopped = site.transport.stop('c');
  leaving.abort();
  await expect(reading).rejects.toThrow(/abort/);
  site.network.isDown = false;
  site.transport.retryNow();
  expect(await stopped).toEqual({ result: 'recorded' });
  while (site.transport.pending('c').length > 0) await new Promise((resolve) => setImmediate(resolve));
  expect(site.requests).toEqual(['POST /c/stop', 'POST ']);
  expect(await site.stored()).toEqual([say('u1', 'Hi')]);
  expect(site.provider.requests).toEqual([]);
  // The next one is answered, and the model gets both.
  const { message } = await read(await site.send([say('u2', 'Again')]));
  expect(toReplyText(message)).toBe('Hello.');
  expect(JSON.stringify(site.provider.requests[0]!.body)).toContain('Hi');
});

test('a page that shows neither a run nor a message that waits stops nothing', async () => {
  await using site = await openSite('reply');
  await asked(site, 'Hi');
  expect(await site.transport.stop('c')).toEqual({ result: 'idle' });
  expect(site.requests).toEqual(['POST ']);
});

test('what one user did is not taken for another who has logged in since', async () => {
  await using site = await openSite('reply');
  const message = await asked(site, 'pay');
  site.logIn(undefined);
  const answer = site.transport.answer('c', answered(message, 'p1', {}));
  while (site.transport.pending('c')[0]?.state !== 'unauthenticated')
    await new Promise((resolve) => setImmediate(resolve));
  site.logIn('bob');
  await expect(answer).rejects.toThrow('Another user has logged in');
  expect(site.transport.pending('c')).toEqual([]);
  site.logIn('ada');
  expect(calls((await site.stored()).at(-1))).toMatchObject([{ state: 'approval-requested' }]);
  await site.transport.answer('c', answered(message, 'p1', {}));
  await untilSaid(site, 'Done.');
  expect(site.paid).toEqual(['p1']);
});

test('what is given up is not sent any more', async () => {
  await using site = await openSite('reply');
  site.network.isDown = true;
  const reading = site.send([say('u1', 'Hi')]);
  const [{ id, kind, isKept } = {}] = site.transport.pending('c');
  // The server has not said whose page it is, so that a reload must not send it.
  expect([kind, isKept]).toEqual(['send', false]);
  site.transport.giveUp(id!);
  await expect(reading).rejects.toThrow('given up');
  site.network.isDown = false;
  expect(await site.transport.stop('c')).toEqual({ result: 'idle' });
  expect([await site.stored(), site.requests]).toEqual([[], []]);
});
