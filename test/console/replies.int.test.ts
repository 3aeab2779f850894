// Replies of an application's own loop in the console: their text and calls, without a claim that calls had no effect.
import { createOpenAI } from '@ai-sdk/openai';
import { startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { createChatHandler } from '@whoa/server';
import { StoppableChatTransport } from '@whoa/server/transport';
import { streamText, tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { CALL, read, say } from '../server/chat-harness.ts';
import { openStore } from '../tasks/open-store.ts';
import { startConsole } from './console.ts';

test('a stopped reply shows its words, its call and its turns, in every tenant and in its conversation', async () => {
  await using rig = await startConsole({ workers: 0 });
  const provider = await startLoopbackProvider({ script: [CALL] });
  await using store = openStore(rig.location);
  const started = Promise.withResolvers<void>();
  const model = createOpenAI({ baseURL: provider.url, apiKey: 'none' }).chat('gpt-4o');
  const work = tool({
    description: 'Sends a mail, whatever it is told.',
    inputSchema: z.object({ q: z.string().optional() }),
    execute: async () => {
      started.resolve();
      return new Promise<string>(() => {});
    },
  });
  await using handler = createChatHandler({
    store,
    tools: { work },
    reply: (turn) => streamText({ model, ...turn }),
    authenticate: () => 'ada',
  });
  const transport = new StoppableChatTransport({
    api: 'http://app.test/api/chat',
    fetch: ((url: string, init: RequestInit) => handler.fetch(new Request(url, init))) as typeof fetch,
  });
  const message = { trigger: 'submit-message', chatId: 'room', messageId: undefined, abortSignal: undefined } as const;
  const reading = read(await transport.sendMessages({ ...message, messages: [say('u1', 'Write to Bob')] }));
  await started.promise;
  await transport.stop('room');
  await reading;

  const page = await rig.open('');
  await page.getByRole('link', { name: 'Write to Bob' }).click();
  await page.getByText('Let me see.').waitFor();
  await page.getByText('Turn 1', { exact: true }).waitFor();
  await page.getByText('no longer waited for').first().waitFor();
  await page
    .getByText(/^1, 1$/)
    .first()
    .waitFor();
  const shown = await page.locator('main').innerText();
  expect(shown).toMatch(/Turns, calls\s+1, 1/);
  expect(shown).not.toContain('no effect');

  const talk = await rig.open('conversations/room?tenant=ada');
  await talk.getByText('Let me see.').waitFor();
  await talk.getByText('Write to Bob').first().waitFor();
  expect(rig.problems).toEqual([]);
  await provider.close();
}, 120_000);
