// An application that had its own route with `streamText`: its options keep their effect, and what it forgets is reported.
import { createOpenAI } from '@ai-sdk/openai';
import { type ScriptedResponse, startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { createMemoryStore } from '@whoa/tasks';
import {
  isStepCount,
  smoothStream,
  streamText,
  type TextStreamPart,
  tool,
  toUIMessageStream,
  type UIMessage,
} from 'ai';
import { expect, test, vi } from 'vitest';
import { z } from 'zod';
import { openDatabase } from '../../../../test/server/app-database.ts';
import { say } from '../../../../test/server/chat-harness.ts';
import { type ChatHandlerOptions, createChatHandler } from './chat-handler.ts';

const tools = {
  look: tool({ inputSchema: z.object({}), execute: () => 'seen' }),
  zone: tool({ inputSchema: z.object({}), outputSchema: z.string() }),
};
type Options = Partial<ChatHandlerOptions<typeof tools>>;
const LOOK: ScriptedResponse = { parts: [{ text: 'Let me see. ' }, { call: 'look' }] };
const SEEN: ScriptedResponse = { parts: [{ text: 'I have seen it.' }] };

async function openSite(
  script: readonly ScriptedResponse[],
  toOptions: (model: ReturnType<typeof modelAt>) => Options,
) {
  const provider = await startLoopbackProvider({ script: [...script] });
  const store = createMemoryStore();
  const handler = createChatHandler({ store, authenticate: () => 'ada', tools, ...toOptions(modelAt(provider.url)) });
  const ask = (method: string, path: string, body?: object) =>
    handler.fetch(
      new Request(`http://app.test/api/chat${path}`, {
        method,
        headers: { 'content-type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
      }),
    );
  return {
    provider,
    store,
    handler,
    ask,
    send: async (body: object) => (await ask('POST', '', { id: 'c', ...body })).text(),
    shown: async () => (await (await ask('GET', '/c/messages')).json()) as UIMessage[],
    async [Symbol.asyncDispose]() {
      await handler[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
      await provider.close();
    },
  };
}

function modelAt(baseURL: string) {
  return createOpenAI({ baseURL, apiKey: 'none' }).responses('gpt-5');
}

/** A transform of the application. */
const shout = () =>
  new TransformStream<TextStreamPart<typeof tools>, TextStreamPart<typeof tools>>({
    transform: (part, controller) =>
      controller.enqueue(part.type === 'text-delta' ? { ...part, text: part.text.toUpperCase() } : part),
  });

/** Collects the warnings of some work. */
async function collectWarnings<T>(
  work: () => T | Promise<T>,
): Promise<{ readonly warnings: string[]; readonly result: T }> {
  const warnings: string[] = [];
  const spy = vi.spyOn(process, 'emitWarning').mockImplementation((given) => void warnings.push(String(given)));
  try {
    return { result: await work(), warnings };
  } finally {
    spy.mockRestore();
  }
}

test("the loop's own options keep their effect with `turn.with`", async () => {
  const heard: string[] = [];
  await using site = await openSite([LOOK, SEEN], (model) => ({
    reply: (turn) =>
      streamText(
        turn.with({
          model,
          stopWhen: isStepCount(1),
          prepareStep: ({ stepNumber }) => void heard.push(`prepare ${stepNumber}`),
          onStepEnd: ({ usage }) => void heard.push(`billed ${usage.inputTokens}`),
          onEnd: () => void heard.push('end'),
          providerOptions: { openai: { user: 'ada' } },
          experimental_transform: [smoothStream({ delayInMs: null }), shout],
        }),
      ),
  }));
  const text = await site.send({ messages: [say('u1', 'Look')] });
  expect(heard).toEqual(['prepare 0', 'billed 11', 'end']);
  expect(site.provider.requests.map(({ body }) => body)).toMatchObject([{ user: 'ada', store: false }]);
  expect(text).toContain('LET ME SEE.');
  // Tokens are counted in addition to the application's transform.
  expect((await site.shown()).at(-1)?.metadata).toMatchObject({ usage: { inputTokens: 11, isComplete: true } });
});

test('raw parts reach a loop that asks for them', async () => {
  const types = new Set<string>();
  await using site = await openSite([SEEN], (model) => ({
    reply: (turn) =>
      streamText(
        turn.with({ model, include: { rawChunks: true }, onChunk: ({ chunk }) => void types.add(chunk.type) }),
      ),
  }));
  await site.send({ messages: [say('u1', 'Look')] });
  expect([...types]).toContain('raw');
});

test('a loop that its own signal has ended is a failed reply', async () => {
  const failures: string[] = [];
  const hooks = { 'hook-error': ({ error }: { error: unknown }) => failures.push((error as Error).message) };
  await using site = await openSite([{ parts: [{ text: ['Once', { stall: true }] }] }], (model) => ({
    hooks,
    reply: (turn) => {
      const own = new AbortController();
      const onChunk = () => own.abort();
      return streamText(turn.with({ model, abortSignal: own.signal, onChunk }));
    },
  }));
  await site.send({ messages: [say('u1', 'Look')] });
  expect(failures).toEqual(["The loop's own abortSignal has ended this reply"]);
  expect((await site.store.list({ tenant: 'ada' })).tasks[0]?.status).toBe('failed');
});

test('options next to a spread turn are named in development, and only there', async () => {
  const create = (reply: Options['reply']) =>
    createChatHandler({ store: 'memory', authenticate: () => 'ada', tools, reply: reply! });
  const model = modelAt('http://127.0.0.1:1');
  const spread = () =>
    // The compiler sees only options that stand next to the spread.
    // @ts-expect-error -- they are replaced
    create((turn) => streamText({ model, stopWhen: isStepCount(1), onStepEnd: () => {}, ...turn }));
  const { warnings } = await collectWarnings(async () => {
    const handlers = [
      spread(),
      create((turn) => streamText({ model, ...turn })),
      create((turn) => streamText(turn.with({ model, stopWhen: isStepCount(1) }))),
      create(function reply(given) {
        return streamText({ ...given, model, prepareStep: () => ({}) });
      }),
    ];
    for (const handler of handlers) await handler[Symbol.asyncDispose]();
  });
  expect(warnings).toEqual([
    'reply: `...turn` and your stopWhen, onStepEnd replace each other; pass your options to turn.with({ … }), and both have effect',
    'reply: `...given` and your prepareStep replace each other; pass your options to given.with({ … }), and both have effect',
  ]);
  vi.stubEnv('NODE_ENV', 'production');
  try {
    expect((await collectWarnings(async () => spread()[Symbol.asyncDispose]())).warnings).toEqual([]);
  } finally {
    vi.unstubAllEnvs();
  }
});

const BEFORE = [
  say('u1', 'I ordered a lamp.'),
  { id: 'a1', role: 'assistant', parts: [{ type: 'text', text: 'Fine.' }] },
];

test.for(['store', 'own database'])(
  'earlier messages that no one knows are reported once, in words (%s)',
  async (where) => {
    using db = openDatabase();
    await using site = await openSite([SEEN, SEEN, SEEN, SEEN], (model) => ({
      ...(where !== 'store' && { history: db.history }),
      reply: (turn) => streamText({ model, ...turn }),
    }));
    const first = await collectWarnings(async () => {
      await site.send({ id: 'new', messages: [say('n1', 'Hi')] });
      await site.send({ messages: [...BEFORE, say('u2', 'Where is it?')] });
    });
    expect(first.warnings).toHaveLength(1);
    expect(first.warnings[0]).toContain(
      'A page sent 2 earlier messages of a chat that this server does not know, so the model',
    );
    expect(first.warnings[0]).toContain(where === 'store' ? 'pass `history`' : '`history.load` returned none of them');
    const again = await collectWarnings(async () => {
      // Plain `useChat` sends the whole chat each time.
      await site.send({ messages: [...BEFORE, say('u2', 'Where is it?'), say('u3', 'Well?')] });
      await site.send({ id: 'other', messages: [...BEFORE, say('o1', 'Where is it?')] });
    });
    expect(again.warnings).toEqual([]);
  },
);

test('a page that sends what the server knows is not reported', async () => {
  await using site = await openSite([SEEN, SEEN], (model) => ({ reply: (turn) => streamText({ model, ...turn }) }));
  const { warnings } = await collectWarnings(async () => {
    await site.send({ messages: [say('u1', 'Hi')] });
    await site.send({ messages: [...(await site.shown()), say('u2', 'And?')] });
  });
  expect(warnings).toEqual([]);
});

test.for(['toUIMessageStream', 'the result'])(
  'the cause of a failed reply is reported, whatever the form of the loop (%s)',
  async (form) => {
    const failures: unknown[] = [];
    const hooks = { 'hook-error': ({ error }: { error: unknown }) => failures.push(error) };
    await using site = await openSite([{ status: 400, message: 'no such model' }], (model) => ({
      hooks,
      reply: (turn) => {
        const result = streamText({ model, maxRetries: 0, onError: () => {}, ...turn });
        return form === 'the result' ? result : toUIMessageStream({ stream: result.stream });
      },
    }));
    const text = await site.send({ messages: [say('u1', 'Hi')] });
    expect(failures).toMatchObject([{ statusCode: 400, message: expect.stringContaining('no such model') as string }]);
    expect(text).not.toContain('no such model');
  },
);

test("data that a page adds to a message, or sends alone, reaches the model in the application's words", async () => {
  await using site = await openSite([SEEN, SEEN, SEEN], (model) => ({
    convertDataPart: ({ type, data }) =>
      type === 'data-place' ? { type: 'text', text: `I am in ${String(data)}.` } : undefined,
    reply: (turn) => streamText({ model, ...turn }),
  }));
  const [place, mood] = [{ type: 'data-place', data: 'Oslo' } as const, { type: 'data-mood', data: 'calm' } as const];
  const message = say('u1', 'Hi') as UIMessage;
  await site.send({ messages: [{ ...message, parts: [...message.parts, place, mood] }] });
  expect(site.provider.requests[0]!.body).toMatchObject({
    input: [{ role: 'user', content: [{ text: 'Hi' }, { text: 'I am in Oslo.' }] }],
  });
  await site.send({ messages: [{ ...message, id: 'u2', parts: [mood] }] });
  await site.send({ messages: [{ ...message, id: 'u3', parts: [place] }] });
  const { input } = site.provider.requests.at(-1)!.body as { input: { role: string; content: unknown }[] };
  const asked = input.filter(({ role }) => role === 'user').map(({ content }) => content);
  // A message of which the model gets nothing is not there: providers refuse it.
  expect(asked).toMatchObject([[{}, {}], [{ text: 'I am in Oslo.' }]]);
});

test('the body of a message also applies when it is continued, unless the page sends another', async () => {
  const bodies: unknown[] = [];
  const zone: ScriptedResponse = { parts: [{ call: 'zone', id: 'z1' }] };
  const again: ScriptedResponse = { parts: [{ call: 'zone', id: 'z2' }] };
  await using site = await openSite([zone, again, SEEN], (model) => ({
    reply: (turn, { body }) => {
      bodies.push(body);
      return streamText({ model, ...turn });
    },
  }));
  await site.send({ messages: [say('u1', 'What time is it?')], body: 1, model: 'large' });
  const answer = async (body: object) => {
    const message = (await site.shown()).at(-1)!;
    const parts = message.parts.map((part) =>
      'state' in part && part.state === 'input-available'
        ? { ...part, state: 'output-available', output: 'Oslo' }
        : part,
    );
    await site.send({ messages: [say('u1', 'What time is it?'), { ...message, parts }], ...body });
  };
  await answer({});
  await answer({ model: 'small' });
  expect(bodies).toMatchObject([{ model: 'large' }, { model: 'large' }, { model: 'small' }]);
});

test.for([
  ['GET', `/${'x'.repeat(201)}/messages`],
  ['GET', `/${'x'.repeat(7_000)}/stream`],
  ['POST', `/${'x'.repeat(201)}/stop`],
  ['POST', `/${'x'.repeat(201)}/approve`],
  ['DELETE', `/${'x'.repeat(201)}`],
  ['GET', '/a%00b/messages'],
  ['GET', '/%ED%A0%80/stream'],
] as const)('%s with an id that no chat can have is a 400', async ([method, path]) => {
  await using site = await openSite([], (model) => ({ reply: (turn) => streamText({ model, ...turn }) }));
  const { warnings, result } = await collectWarnings(() => site.ask(method, path, method === 'POST' ? {} : undefined));
  // What is not valid UTF-8 is read as text that is, and such a chat is merely unknown.
  expect(result.status).toBe(path.startsWith('/%ED') ? 204 : 400);
  expect(warnings).toEqual([]);
});

test('a chat that was only stopped is not listed, one whose first reply has not ended is, by its message', async () => {
  await using site = await openSite([{ parts: [{ text: ['Once', { stall: true }] }] }], (model) => ({
    reply: (turn) => streamText({ model, ...turn }),
  }));
  expect(await (await site.ask('POST', '/early/stop', { runId: 'r1' })).json()).toMatchObject({ result: 'recorded' });
  expect(await site.handler.chats('ada')).toEqual({ chats: [] });
  const response = await site.ask('POST', '', { id: 'c', messages: [say('u1', ' Tell a\nstory ')] });
  await site.provider.waitForRequest(0);
  expect((await site.handler.chats('ada')).chats).toMatchObject([{ id: 'c', title: 'Tell a story' }]);
  await site.ask('POST', '/c/stop', {});
  await response.text();
  expect((await site.handler.chats('ada')).chats).toMatchObject([{ id: 'c', title: 'Tell a story' }]);
});
