// A tool that ignores its stop and ends after its turn: the next turn's model sees that it did, and so does anyone who
// opens the chat.
import { createOpenAI } from '@ai-sdk/openai';
import { startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { createMemoryStore } from '@whoa/tasks';
import { streamText, tool, type UIMessage } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { until } from '../../../../test/promises/fixture.ts';
import { CALL, read, say } from '../../../../test/server/chat-harness.ts';
import { createChatHandler } from './chat-handler.ts';
import { StoppableChatTransport } from './client/stoppable-chat-transport.ts';

async function openChat() {
  const stack = new AsyncDisposableStack();
  const provider = await startLoopbackProvider({ script: [CALL, { parts: [{ text: 'I see.' }] }] });
  stack.defer(() => provider.close());
  const store = stack.use(createMemoryStore());
  const [started, mail] = [Promise.withResolvers<void>(), Promise.withResolvers<string>()];
  const model = createOpenAI({ baseURL: provider.url, apiKey: 'none' }).chat('gpt-4o');
  const execute = (): Promise<string> => {
    started.resolve();
    return mail.promise;
  };
  const work = tool({ description: 'Sends a mail.', inputSchema: z.object({ q: z.string().optional() }), execute });
  const handler = stack.use(
    createChatHandler({
      store,
      tools: { work },
      reply: (turn) => streamText({ model, ...turn }),
      authenticate: () => 'ada',
    }),
  );
  const transport = new StoppableChatTransport({
    api: 'http://app.test/api/chat',
    fetch: ((url: string, init: RequestInit) => handler.fetch(new Request(url, init))) as typeof fetch,
  });
  const send = (message: UIMessage) =>
    transport.sendMessages({
      trigger: 'submit-message',
      chatId: 'c',
      messageId: undefined,
      abortSignal: undefined,
      messages: [message],
    });
  const messages = async (): Promise<string> =>
    (await handler.fetch(new Request('http://app.test/api/chat/c/messages'))).text();
  const reading = read(await send(say('u1', 'Write to Bob')));
  await started.promise;
  await transport.stop('c');
  await reading;
  return { provider, store, mail, send, messages, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

test.for([
  ['finished', (mail: PromiseWithResolvers<string>) => mail.resolve('sent'), 'still finished later: sent'],
  ['failed', (mail: PromiseWithResolvers<string>) => mail.reject(new Error('no server')), 'failed later: no server'],
] as const)(
  'a call that %s later is reported in the next turn, and the ended task does not change',
  async ([, end, told]) => {
    await using chat = await openChat();
    const [task] = (await chat.store.list({ tenant: 'ada', conversation: 'c' })).tasks;
    const record = await chat.store.get(task!);
    expect(await chat.messages()).toContain('Outcome unknown');
    end(chat.mail);
    await until(async () => (await chat.messages()).includes(told));
    expect(await chat.messages()).not.toContain('Outcome unknown: it was still');
    expect(await chat.store.get(task!)).toEqual(record);
    await read(await chat.send(say('u2', 'And?')));
    expect(JSON.stringify(chat.provider.requests.at(-1)!.body)).toContain(told);
  },
);

test('the next turn sees the results known so far, and the one after it the rest', async () => {
  await using chat = await openChat();
  await read(await chat.send(say('u2', 'And?')));
  expect(JSON.stringify(chat.provider.requests.at(-1)!.body)).toContain('Outcome unknown');
  chat.mail.resolve('sent');
  await until(async () => (await chat.messages()).includes('still finished later: sent'));
});
