// The examples, as their pages say to run them: every server, and the page in a browser.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { stripVTControlCharacters } from 'node:util';
import { startLoopbackProvider } from '@whoa/ai-sdk/testing';
import type { Browser } from 'playwright-core';
import { build } from 'vite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { forChange, isNight } from '../night.ts';
import { launchBrowser } from './chat-page.ts';

const ROOT = join(import.meta.dirname, '../..');
let browser: Browser;
beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(() => browser.close());

interface Program extends AsyncDisposable {
  readonly url: string;
}

/** Starts a program and resolves with the first address that it prints. */
async function start(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Program> {
  const child: ChildProcess = spawn(process.execPath, args, {
    cwd: ROOT,
    env: { ...process.env, PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  let printed = '';
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout!.on('data', (data: Buffer) => {
      printed += data.toString();
      const [, found] = /(http:\/\/[\w.:]+\d)/.exec(stripVTControlCharacters(printed)) ?? [];
      if (found !== undefined) resolve(found);
    });
    exited.then(() => reject(new Error(`${args.join(' ')} ended: ${printed}`)), reject);
  });
  return {
    url,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

const example = (name: string) => start(['--conditions=@whoa/source', `examples/web-chat/${name}.ts`]);

describe.each(forChange(['hono', 'express', 'fastify'], (name) => name === 'express'))('%s', (name) => {
  test('serves a chat that stops', async () => {
    await using server = await example(name);
    const post = (path: string, body: object) =>
      fetch(`${server.url}/api/chat${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
    const message = { id: 'u', role: 'user', parts: [{ type: 'text', text: 'A story' }] };
    const reply = await post('', { id: 'c', runId: 'r', messages: [message] });
    const reader = reply.body!.pipeThrough(new TextDecoderStream()).getReader();
    let read = '';
    while (!read.includes('Let me look')) read += (await reader.read()).value ?? '';
    expect(await (await post('/c/stop', { runId: 'r' })).json()).toEqual({ result: 'accepted' });
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) read += piece.value;
    expect(read).toContain('"type":"abort"');
    expect(read).toContain('Interrupted (user)');
    expect((await fetch(`${server.url}/api/chat/c/stream`)).status).toBe(204);
  });
});

test('the page streams, continues after a reload, and its button stops', async () => {
  await using server = await example('hono');
  await using vite = await start(
    ['node_modules/vite/bin/vite.js', 'examples/web-chat', '--port', '0', '--host', '127.0.0.1'],
    {
      CHAT_URL: server.url,
    },
  );
  const page = await (await browser.newContext()).newPage();
  await page.goto(vite.url);
  await page.click('button[type=submit]');
  const shows = (text: string) =>
    page.waitForFunction((wanted) => document.querySelector('article.assistant')?.textContent?.includes(wanted), text);
  await shows('there was an agent');
  await page.reload();
  await shows('there was an agent');
  await page.click('button.stop');
  await page.waitForSelector('article.assistant footer');
  expect(await page.textContent('article.assistant footer')).toContain('Stopped.');
  await page.waitForSelector('button[type=submit]');
  if (process.env['WHOA_SCREENSHOTS'])
    await page.screenshot({ path: join(process.env['WHOA_SCREENSHOTS'], 'web-chat.png') });
  await page.context().close();
});

test.runIf(isNight)(
  'the application of the how-to: log in, send, reload, stop, and the chat is in its database',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'whoa-how-to-'));
    const app = join(ROOT, 'examples/web-chat/app');
    const conditions = ['@whoa/source', 'module', 'browser', 'production'];
    await build({ root: app, build: { outDir: join(folder, 'dist') }, resolve: { conditions }, logLevel: 'silent' });
    await using provider = await startPausedProvider();
    const env = {
      OPENAI_BASE_URL: provider.url,
      OPENAI_API_KEY: 'none',
      DATABASE: join(folder, 'app.db'),
      PAGE: join(folder, 'dist'),
    };
    await using server = await start(['--conditions=@whoa/source', '--no-warnings', join(app, 'server.ts')], env);
    expect((await fetch(`${server.url}/api/chat/first/messages`)).status).toBe(401);
    const page = await (await browser.newContext()).newPage();
    await page.goto(server.url);
    await page.fill('input[name=user]', 'ada');
    await page.click('button');
    await page.getByText('Send').waitFor();
    await page.fill('input', 'Tell me a story');
    await page.click('button');
    await page.getByText('Once upon').waitFor();
    await page.reload();
    await page.getByText('Once upon').waitFor();
    await page.getByText('Stop', { exact: true }).click();
    await page.getByText('(stopped)').waitFor();
    await page.getByText('Send').waitFor();
    await page.reload();
    await page.getByText('(stopped)').waitFor();
    expect(await page.locator('p').count()).toBe(2);
    using db = new DatabaseSync(env.DATABASE);
    expect(String(db.prepare('SELECT messages FROM chats WHERE owner = ?').get('ada')?.['messages'])).toContain(
      'Once upon',
    );
    await page.context().close();
    rmSync(folder, { recursive: true });
  },
);

async function startPausedProvider() {
  const provider = await startLoopbackProvider({ script: [{ parts: [{ text: ['Once upon ', { stall: true }] }] }] });
  return Object.assign(provider, { [Symbol.asyncDispose]: () => provider.close() });
}

test('the route file for Next.js has what Next.js calls', async () => {
  const route = (await import('../../examples/web-chat/next-route.ts')) as Record<string, unknown>;
  expect(Object.keys(route).toSorted()).toEqual(['DELETE', 'GET', 'POST']);
});
