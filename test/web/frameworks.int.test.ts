// Pages without React: the AI SDK's own Chat classes of Vue and Svelte with our transport, in Chromium.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createOpenAI } from '@ai-sdk/openai';
import { startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { createChatHandler, listen } from '@whoa/server';
import { createMemoryStore } from '@whoa/tasks';
import { streamText } from 'ai';
import { type BuildOptions, build, type Plugin, stop } from 'esbuild';
import type { Browser, Page, Route } from 'playwright-core';
import { compile, compileModule } from 'svelte/compiler';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { forChange, isNight } from '../night.ts';
import { until } from '../promises/fixture.ts';
import { launchBrowser } from './chat-page.ts';
import { fileFor } from './files.ts';

const ROOT = join(import.meta.dirname, '../..');
const EXAMPLES = join(ROOT, 'examples/web-chat');

const svelte: Plugin = {
  name: 'svelte',
  setup(own) {
    const options = { generate: 'client', dev: false } as const;
    own.onLoad({ filter: /\.svelte$/ }, ({ path }) => ({
      contents: compile(readFileSync(path, 'utf8'), { ...options, filename: path, css: 'injected' }).js.code,
    }));
    own.onLoad({ filter: /\.svelte\.js$/ }, ({ path }) => ({
      contents: compileModule(readFileSync(path, 'utf8'), { ...options, filename: path }).js.code,
    }));
  },
};

const SVELTE_MAIN = `
  import { mount } from 'svelte';
  import Chat from './Chat.svelte';
  const id = location.hash.slice(1);
  const messages = await (await fetch('/api/chat/' + id + '/messages')).json();
  mount(Chat, { target: document.getElementById('root'), props: { id, messages } });`;

const PAGES: Readonly<Record<string, BuildOptions>> = {
  vue: { entryPoints: [join(EXAMPLES, 'vue.ts')], alias: { vue: 'vue/dist/vue.runtime.esm-bundler.js' } },
  svelte: { stdin: { contents: SVELTE_MAIN, resolveDir: EXAMPLES }, plugins: [svelte] },
};

async function bundle(options: BuildOptions, minify = true) {
  const { outputFiles, metafile } = await build({
    bundle: true,
    minify,
    write: false,
    metafile: true,
    format: 'esm',
    target: 'es2022',
    conditions: ['@whoa/source', 'svelte', 'browser'],
    define: {
      'process.env.NODE_ENV': '"production"',
      __VUE_OPTIONS_API__: 'false',
      __VUE_PROD_DEVTOOLS__: 'false',
      __VUE_PROD_HYDRATION_MISMATCH_DETAILS__: 'false',
    },
    logLevel: 'silent',
    ...options,
  });
  return { script: outputFiles![0]!.text, files: Object.keys(metafile!.inputs) };
}

let browser: Browser;
beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser.close();
  await stop();
});

test('the transport imports no React', async () => {
  const { files } = await bundle({
    stdin: { contents: "export * from '@whoa/server/transport'", resolveDir: join(ROOT, 'packages/server') },
  });
  expect(files.filter((file) => /node_modules\/(react|react-dom|@ai-sdk\/react|swr)\//.test(file))).toEqual([]);
  expect(files.some((file) => file.includes('stoppable-chat-transport'))).toBe(true);
  const own = await bundle({
    stdin: { contents: "export * from '@whoa/server/client'", resolveDir: join(ROOT, 'packages/server') },
  });
  expect(own.files.some((file) => file.includes('node_modules/react/'))).toBe(true);
});

async function openSite(script: string) {
  const stack = new AsyncDisposableStack();
  let release = Promise.withResolvers<void>();
  const provider = await startLoopbackProvider({
    script: () => ({ parts: [{ text: ['Once upon ', { stall: release.promise }, 'a time.'] }] }),
  });
  stack.defer(() => provider.close());
  const store = stack.use(createMemoryStore());
  const handler = stack.use(
    createChatHandler({
      store,
      authenticate: () => 'ada',
      reply: (turn) =>
        streamText({ model: createOpenAI({ baseURL: provider.url, apiKey: 'none' }).chat('gpt-4o'), ...turn }),
    }),
  );
  const server = stack.use(
    await listen({
      fetch(request) {
        const { pathname } = new URL(request.url);
        return pathname.startsWith('/api/') ? handler.fetch(request) : fileFor(pathname, script);
      },
    }),
  );
  const page = await browser.newPage();
  stack.defer(() => page.close());
  await page.goto(`${server.url}/#c1`);
  return {
    page,
    /** Opens the chat in another browser. */
    async phone() {
      const phone = await browser.newPage();
      stack.defer(() => phone.close());
      await phone.goto(`${server.url}/#c1`);
      await phone.waitForSelector('input');
      return phone;
    },
    release() {
      release.resolve();
      release = Promise.withResolvers();
    },
    statuses: async () => (await store.list({ tenant: 'ada', conversation: 'c1' })).tasks.map(({ status }) => status),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

const say = async (page: Page, text: string): Promise<void> => {
  await page.fill('input', text);
  await page.getByText('Send', { exact: true }).click();
};
const reply = (page: Page, text: string) => page.locator('article.assistant').last().getByText(text).waitFor();

/** Loses the requests of a page that send something, until what it returns is called. */
async function lose(page: Page): Promise<() => Promise<void>> {
  const abort = (route: Route): Promise<void> =>
    route.request().method() === 'POST' ? route.abort('connectionreset') : route.continue();
  await page.route('**/api/**', abort);
  return async () => {
    await page.unroute('**/api/**', abort);
    await page.evaluate(() => dispatchEvent(new Event('online')));
  };
}

describe.each(forChange(Object.keys(PAGES), (name) => name === 'vue'))('%s', (name) => {
  let script: string;
  beforeAll(async () => {
    ({ script } = await bundle(PAGES[name]!));
  });

  test('a reply streams, survives a reload, and Stop stops the run', async () => {
    await using site = await openSite(script);
    const { page } = site;
    await say(page, 'A story');
    await reply(page, 'Once upon');
    await page.reload();
    await reply(page, 'Once upon');
    expect(await site.statuses()).toEqual(['running']);
    await page.getByText('Stop', { exact: true }).click();
    await page.getByText('Stopped.').waitFor();
    await page.getByText('Send', { exact: true }).waitFor();
    await until(async () => (await site.statuses())[0] === 'cancelled');
    await say(page, 'Again');
    // Not before the provider waits for it.
    await page.locator('article').nth(3).getByText('Once upon').waitFor();
    site.release();
    await reply(page, 'Once upon a time.');
    await page.getByText('Send', { exact: true }).waitFor();
    expect(await site.statuses()).toEqual(['success', 'cancelled']);
    expect(await page.locator('article').count()).toBe(4);
  });

  test('another browser shows a reply that it did not ask for, and stops it', async () => {
    await using site = await openSite(script);
    const phone = await site.phone();
    await say(site.page, 'A story');
    for (const page of [site.page, phone]) await reply(page, 'Once upon');
    await phone.getByText('Stop', { exact: true }).click();
    for (const page of [phone, site.page]) {
      await page.getByText('Stopped.').waitFor();
      await page.getByText('Send', { exact: true }).waitFor();
      expect(await page.locator('article').count()).toBe(2);
    }
  });

  test.runIf(isNight)(
    'a message and a Stop are kept while the network is away, the message also over a reload',
    async () => {
      await using site = await openSite(script);
      const { page } = site;
      await say(page, 'A story');
      await reply(page, 'Once upon');
      site.release();
      await reply(page, 'Once upon a time.');
      await page.getByText('Send', { exact: true }).waitFor();
      const restoreSends = await lose(page);
      const lost = page.waitForEvent('requestfailed');
      await say(page, 'Another');
      await lost;
      await page.reload();
      await restoreSends();
      await until(async () => (await site.statuses())[0] === 'running');
      await page.reload();
      await reply(page, 'Once upon');
      const restoreStops = await lose(page);
      const again = page.waitForEvent('requestfailed');
      await page.getByText('Stop', { exact: true }).click();
      await again;
      expect(await site.statuses()).toEqual(['running', 'success']);
      await restoreStops();
      await page.getByText('Stopped.').waitFor();
      await until(async () => (await site.statuses())[0] === 'cancelled');
    },
  );
});
