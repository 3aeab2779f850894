// The shop chat, built by Next and started twice on one database, with a model on this machine and a browser.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { startLoopbackProvider } from '@whoa/ai-sdk/testing';
import type { Page } from 'playwright-core';
import { until } from '../promises/fixture.ts';
import { launchBrowser } from '../web/chat-page.ts';

/** Where `before` and `after` are installed and built. */
export const FOLDER = process.env['SHOP_CHAT'];
/** With a key the model is the real one: its text is not compared, but the shop's behaviour is. */
export const IS_REAL = process.env['OPENAI_API_KEY'] !== undefined;
const SEARCH_MS = 4_000;
const REFUND_MS = 1_500;
export const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==';

interface Said {
  readonly role: string;
  readonly content: unknown;
}

/** The model on this machine: it follows the customer's words. A story pauses until it is released. */
function think(messages: readonly Said[], gate: Promise<unknown>) {
  const last = messages.at(-1)!;
  const asked = JSON.stringify(messages.findLast(({ role }) => role === 'user')?.content);
  if (last.role === 'tool') return { parts: [{ text: `Done: ${String(last.content)}` }] };
  if (/image_url/.test(asked)) return { parts: [{ text: 'I see a picture.' }] };
  if (/find/i.test(asked))
    return { parts: [{ text: 'One moment. ' }, { call: 'find_orders', input: { item: 'lamp' } }] };
  const [, order] = /refund order (\d+)/i.exec(asked) ?? [];
  if (order !== undefined) return { parts: [{ call: 'refund', input: { order: Number(order) } }] };
  if (/time zone/i.test(asked)) return { parts: [{ call: 'time_zone', input: {} }] };
  if (/story/i.test(asked)) return { parts: [{ text: ['Once upon ', 'a time ', { stall: gate }, 'it ended.'] }] };
  return { parts: [{ text: 'Hello!' }] };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

/** Starts an instance as `npm start` does. */
async function startInstance(cwd: string, env: NodeJS.ProcessEnv) {
  const port = await freePort();
  const args = ['node_modules/next/dist/bin/next', 'start', '--hostname', '127.0.0.1', '--port', String(port)];
  const child = spawn(process.execPath, args, { cwd, env: { ...process.env, ...env }, stdio: 'inherit' });
  const exited = once(child, 'exit');
  const url = `http://127.0.0.1:${port}`;
  await until(() =>
    fetch(`${url}/login`).then(
      ({ ok }) => ok,
      () => false,
    ),
  );
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL');
    await exited;
  };
  return { url, kill };
}

/** Starts two instances of `before` or `after` and a browser. The model pauses a story until it is released. */
export async function openShop(kind: 'before' | 'after', store: string | undefined) {
  if (FOLDER === undefined)
    throw new Error(
      `Set SHOP_CHAT to a folder with the built shop chat in '${kind}'; see examples/apps/shop-chat/README.md`,
    );
  const stack = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), 'whoa-shop-'));
  stack.defer(() => rmSync(folder, { recursive: true }));
  const gates: PromiseWithResolvers<void>[] = [];
  const provider = await startLoopbackProvider({
    script({ body }) {
      const gate = Promise.withResolvers<void>();
      gates.push(gate);
      return think((body as { messages: readonly Said[] }).messages, gate.promise);
    },
  });
  stack.defer(() => provider.close());
  const DATABASE = join(folder, 'shop.db');
  const env = {
    DATABASE,
    SEARCH_MS: `${SEARCH_MS}`,
    REFUND_MS: `${REFUND_MS}`,
    ...(store !== undefined && { STORE_URL: store }),
    ...(!IS_REAL && { OPENAI_BASE_URL: provider.url, OPENAI_API_KEY: 'none' }),
  };
  const instances: Awaited<ReturnType<typeof startInstance>>[] = [];
  for (let count = 0; count < 2; count++) {
    const instance = await startInstance(join(FOLDER, kind), env);
    stack.defer(instance.kill);
    instances.push(instance);
  }
  const browser = await launchBrowser();
  stack.defer(() => browser.close());
  const db = new DatabaseSync(DATABASE, { timeout: 5_000 });
  stack.defer(() => db.close());
  const context = await browser.newContext({ timezoneId: 'Europe/Oslo' });
  context.setDefaultTimeout(60_000);
  const toAddress = (path: string, instance = 0): string => `${instances[instance]!.url}${path}`;
  const list = (sql: string): string[] =>
    db
      .prepare(sql)
      .all()
      .map((row) => String(Object.values(row)[0]));
  let chats = 0;
  return {
    kind,
    provider,
    toAddress,
    browser,
    context,
    db,
    log: () => list("SELECT what FROM log WHERE owner = 'ada' ORDER BY entry"),
    readState: (order: number) => list(`SELECT state FROM orders WHERE id = ${order}`)[0],
    readMessages: (id: string) => list(`SELECT messages FROM chats WHERE id = '${id}'`)[0] ?? '',
    letGo() {
      for (const { resolve } of gates) resolve();
    },
    /** Opens a new chat of ada. */
    async open() {
      const id = `chat-${++chats}`;
      const page = await context.newPage();
      await visit(page, toAddress(`/chat/${id}`));
      return { id, page };
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

export type Shop = Awaited<ReturnType<typeof openShop>>;

export async function logIn(page: Page, user: string, password: string): Promise<void> {
  await page.fill('[name=user]', user);
  await page.fill('[name=password]', password);
  await page.click('text=Log in');
}

/** Opens a chat, and waits until its page listens: a server has rendered it. */
export async function visit(page: Page, address: string): Promise<void> {
  await page.goto(address);
  await page.waitForFunction(() =>
    Object.keys(document.querySelector('form') ?? {}).some((key) => key.startsWith('__reactProps')),
  );
}

export async function say(page: Page, text: string): Promise<void> {
  await page.fill('[name=text]', text);
  await page.click('button:text-is("Send")');
}

export const isReady = (page: Page) => page.waitForSelector('button:text("Send"):enabled');
export const stopButton = (page: Page) => page.locator('button:text-is("Stop")');
export const readReply = async (page: Page): Promise<string> =>
  (await page.locator('article.assistant').last().innerText()).trim();
