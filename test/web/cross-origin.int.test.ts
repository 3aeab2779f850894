// A page on another origin than its server, which knows its user by a cookie, in Chromium.
import { createChatHandler, type ListeningServer, listen } from '@whoa/server';
import { build, stop } from 'esbuild';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { say } from '../server/chat-harness.ts';
import { launchBrowser } from './chat-page.ts';

const SCRIPT = `
  import { StoppableChatTransport } from '@whoa/server/transport';
  window.ask = async (api) => {
    const transport = new StoppableChatTransport({ api, credentials: 'include', headers: { 'x-locale': 'nb' } });
    const message = ${JSON.stringify(say('u1', 'Hi'))};
    const options = { chatId: 'c', trigger: 'submit-message', messages: [message] };
    const words = [];
    // The browser says no more than that it failed. The page would try again for ever.
    transport.onChange(() => {
      for (const { id, state } of transport.pending('c')) if (state === 'waiting') transport.giveUp(id);
    });
    for await (const chunk of await transport.sendMessages(options)) {
      words.push(chunk.delta ?? '');
      if (chunk.type === 'text-delta') words.push((await transport.stop('c')).result);
    }
    return words.join('');
  };
  window.ready = true;`;

let browser: Browser;
let script: string;
beforeAll(async () => {
  browser = await launchBrowser();
  const { outputFiles } = await build({
    stdin: { contents: SCRIPT, resolveDir: `${import.meta.dirname}/../../packages/server` },
    bundle: true,
    write: false,
    format: 'esm',
    conditions: ['@whoa/source'],
    logLevel: 'silent',
  });
  script = outputFiles[0]!.text;
  await stop();
});
afterAll(() => browser.close());

const site = (): Promise<ListeningServer> =>
  listen({
    fetch: ({ url }) =>
      new URL(url).pathname === '/page.js'
        ? new Response(script, { headers: { 'content-type': 'text/javascript' } })
        : new Response('<script type=module src=/page.js></script>', { headers: { 'content-type': 'text/html' } }),
  });

test('a listed origin talks and stops with its cookie and own headers; another one is rejected', async () => {
  await using page = await site();
  await using stranger = await site();
  const seen: string[] = [];
  await using handler = createChatHandler({
    store: 'memory',
    origins: [page.url],
    forwardHeaders: ['x-locale'],
    authenticate: (request) => /session=(\w+)/.exec(request.headers.get('cookie') ?? '')?.[1],
    reply: async function* (_, { principal, headers }) {
      seen.push(`${principal.name} ${headers['x-locale']}`);
      yield { type: 'text-start', id: '1' } as const;
      yield { type: 'text-delta', id: '1', delta: 'Hei ' } as const;
      await new Promise(() => {});
    },
  });
  await using server = await listen(handler);
  const context = await browser.newContext();
  await context.addCookies([{ name: 'session', value: 'ada', url: server.url, sameSite: 'Strict', httpOnly: true }]);
  const ask = async (from: ListeningServer): Promise<string> => {
    const tab = await context.newPage();
    await tab.goto(from.url);
    await tab.waitForFunction('window.ready');
    return tab
      .evaluate(
        (api) => (window as unknown as { ask: (api: string) => Promise<string> }).ask(api),
        `${server.url}/api/chat`,
      )
      .catch((error: unknown) => `refused: ${String(error)}`);
  };
  expect(await ask(stranger)).toMatch(/^refused: .*given up/);
  expect(seen).toEqual([]);
  expect(await ask(page)).toMatch(/Hei accepted|AbortError/);
  expect(seen).toEqual(['ada nb']);
  expect((await handler.messages('c', 'ada')).map(({ role }) => role)).toEqual(['user', 'assistant']);
  await context.close();
});
