/* oxlint-disable typescript/no-deprecated -- what applications have */
// Messages that a newer one replaces while they wait for the end of a reply.
import { createOpenAI } from '@ai-sdk/openai';
import { startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { createMemoryStore } from '@whoa/tasks';
import { streamText, tool, type UIMessage } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { openDatabase } from '../../../../test/server/app-database.ts';
import { say } from '../../../../test/server/chat-harness.ts';
import { createChatHandler } from './chat-handler.ts';

/** A chat whose first reply charges a card, and does not end before that is released. */
async function openShop(where: 'store' | 'own database', { isAsked = false } = {}) {
  const stack = new AsyncDisposableStack();
  const provider = await startLoopbackProvider({
    script: [
      ...(isAsked ? [{ parts: [{ call: 'locate', input: {} }] }] : []),
      { parts: [{ call: 'charge', input: {} }] },
      { parts: [{ text: 'To all.' }] },
    ],
  });
  stack.defer(() => provider.close());
  const store = createMemoryStore();
  stack.defer(() => store[Symbol.asyncDispose]());
  const model = createOpenAI({ baseURL: provider.url, apiKey: 'none' }).chat('gpt-4o');
  const [started, release] = [Promise.withResolvers<void>(), Promise.withResolvers<string>()];
  const execute = () => {
    started.resolve();
    return release.promise;
  };
  const handler = stack.use(
    createChatHandler({
      store,
      authenticate: () => 'ada',
      tools: {
        charge: tool({ inputSchema: z.object({}), execute }),
        locate: tool({ inputSchema: z.object({}), outputSchema: z.string() }),
      },
      mustFinish: { charge: { timeoutMs: 60_000 } },
      ...(where === 'own database' && { history: stack.use(openDatabase()).history }),
      reply: (turn) => streamText({ model, ...turn }),
    }),
  );
  const ask = (path: string, body?: object) =>
    handler.fetch(
      new Request(`http://app.test/api/chat${path}`, {
        method: body ? 'POST' : 'GET',
        headers: { 'content-type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
      }),
    );
  const messages = async () => (await (await ask('/c/messages')).json()) as UIMessage[];
  const send = (id: string) => ask('', { id: 'c', messages: [say(id, `Say ${id}`)], runId: `run-${id}` });
  if (isAsked) await (await send('u0')).text();
  const first = await send('u1');
  await started.promise;
  return {
    ask,
    send,
    release: () => release.resolve('charged'),
    ended: () => first.text(),
    messages,
    ids: async () => (await messages()).map(({ id, role }) => [role, id].join(' ').slice(0, 9)),
    got: () => JSON.stringify(provider.requests.at(-1)!.body),
    [Symbol.asyncDispose]: () => {
      release.resolve('charged');
      return stack.disposeAsync();
    },
  };
}

const PLACES = ['store', 'own database'] as const;

test.for(PLACES)(
  'messages that wait when newer ones replace them stay, and the reply is to all (%s)',
  async (where) => {
    await using shop = await openShop(where);
    await shop.send('u2');
    await shop.send('u3');
    const last = await shop.send('u4');
    expect((await shop.ids()).slice(-3)).toEqual(['user u2', 'user u3', 'user u4']);
    shop.release();
    await Promise.all([shop.ended(), last.text()]);
    const roles = ['user u1', 'assistant', 'user u2', 'user u3', 'user u4', 'assistant'];
    expect((await shop.ids()).map((shown) => (shown.startsWith('a') ? 'assistant' : shown))).toEqual(roles);
    for (const words of ['Say u2', 'Say u3', 'Say u4']) expect(shop.got().split(words)).toHaveLength(2);
  },
);

test.for(PLACES)('a message that is stopped while it waits stays, without a reply (%s)', async (where) => {
  await using shop = await openShop(where);
  await shop.send('u2');
  for (let count = 0; count < 2; count++) await shop.ask('/c/stop', { runId: 'run-u2' });
  expect((await shop.ids()).at(-1)).toBe('user u2');
  const last = await shop.send('u3');
  shop.release();
  await Promise.all([shop.ended(), last.text()]);
  expect((await shop.ids()).filter((shown) => shown.startsWith('user'))).toEqual(['user u1', 'user u2', 'user u3']);
});

test.for(PLACES)('a regenerate that is stopped before it arrives repeats no message (%s)', async (where) => {
  await using shop = await openShop(where);
  await shop.ask('/c/stop', { runId: 'again' });
  const messages = [say('u1', 'Say u1')];
  await shop.ask('', { id: 'c', messages, trigger: 'regenerate-message', runId: 'again' });
  const last = await shop.send('u2');
  shop.release();
  await Promise.all([shop.ended(), last.text()]);
  expect((await shop.ids()).filter((shown) => shown.startsWith('user'))).toEqual(['user u1', 'user u2']);
});

test('the rollback of a message that waits leaves those that it had replaced', async () => {
  await using shop = await openShop('store');
  await shop.send('u2');
  const last = await shop.send('u3');
  const stopping = shop.ask('/c/stop', { runId: 'run-u3', rollback: true });
  await last.text();
  shop.release();
  await Promise.all([shop.ended(), stopping]);
  expect((await shop.ids()).filter((shown) => shown.startsWith('user'))).toEqual(['user u1', 'user u2']);
});

test.for(PLACES)('a rollback neither stops nor removes what was said while the turn ended (%s)', async (where) => {
  await using shop = await openShop(where);
  const stopping = shop.ask('/c/stop', { runId: 'run-u1', rollback: 'with-effects' });
  const last = await shop.send('u2');
  shop.release();
  await shop.ended();
  expect(await last.text()).toContain('To all.');
  expect(await (await stopping).json()).toMatchObject({ rolledBack: false });
  const roles = ['user u1', 'assistant', 'user u2', 'assistant'];
  expect((await shop.ids()).map((shown) => (shown.startsWith('a') ? 'assistant' : shown))).toEqual(roles);
});

test('a page that is opened while a stopped reply ends reads the reply to the message that waits', async () => {
  await using shop = await openShop('store');
  await shop.send('u2');
  const found = await shop.ask('/c/stream');
  shop.release();
  await shop.ended();
  expect(await found.text()).toContain('To all.');
});

test('the stop of a message that asks is answered while the reply to a newer one runs', async () => {
  await using shop = await openShop('store', { isAsked: true });
  const messageId = (await shop.messages())[1]!.id;
  const answered = await shop.ask('/c/stop', { messageId });
  expect(await answered.json()).toMatchObject({ result: expect.stringMatching(/too-late|unchanged|idle/) as string });
});
