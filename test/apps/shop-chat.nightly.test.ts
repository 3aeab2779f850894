// The shop chat before and after, each built by Next and started twice on one database. `npm run long -- apps` installs them.
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
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../promises/fixture.ts';
import { borrowPostgres, borrowRedis } from '../servers/borrow.ts';
import { launchBrowser } from '../web/chat-page.ts';

/** Where `before` and `after` are installed and built. */
const FOLDER = process.env['SHOP_CHAT'];
/** With a key the model is the real one: its text is not compared, but the shop's behaviour is. */
const IS_REAL = process.env['OPENAI_API_KEY'] !== undefined;
const SEARCH_MS = 4_000;
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==';

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

async function openShop(kind: 'before' | 'after', store: string | undefined) {
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
    ...(store !== undefined && { STORE_URL: store }),
    ...(!IS_REAL && { OPENAI_BASE_URL: provider.url, OPENAI_API_KEY: 'none' }),
  };
  const instances: Awaited<ReturnType<typeof startInstance>>[] = [];
  for (let count = 0; count < 2; count++) {
    const instance = await startInstance(join(FOLDER!, kind), env);
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

type Shop = Awaited<ReturnType<typeof openShop>>;

async function logIn(page: Page, user: string, password: string): Promise<void> {
  await page.fill('[name=user]', user);
  await page.fill('[name=password]', password);
  await page.click('text=Log in');
}

/** Opens a chat, and waits until its page listens: a server has rendered it. */
async function visit(page: Page, address: string): Promise<void> {
  await page.goto(address);
  await page.waitForFunction(() =>
    Object.keys(document.querySelector('form') ?? {}).some((key) => key.startsWith('__reactProps')),
  );
}

async function say(page: Page, text: string): Promise<void> {
  await page.fill('[name=text]', text);
  await page.click('button:text-is("Send")');
}

const isReady = (page: Page) => page.waitForSelector('button:text("Send"):enabled');
const stopButton = (page: Page) => page.locator('button:text-is("Stop")');
const readReply = async (page: Page): Promise<string> =>
  (await page.locator('article.assistant').last().innerText()).trim();

const KINDS = {
  before: () => Promise.resolve({ url: undefined, [Symbol.asyncDispose]: () => Promise.resolve() }),
  'after, on Redis': borrowRedis,
  'after, on Postgres': borrowPostgres,
};

describe.skipIf(FOLDER === undefined).each(Object.keys(KINDS) as (keyof typeof KINDS)[])('%s', (kind) => {
  const isAfter = kind !== 'before';
  const stack = new AsyncDisposableStack();
  let shop: Shop;
  beforeAll(async () => {
    const store = stack.use(await KINDS[kind]());
    shop = stack.use(await openShop(isAfter ? 'after' : 'before', store.url));
    const page = await shop.context.newPage();
    await page.goto(shop.toAddress('/'));
    await logIn(page, 'ada', 'secret');
    await page.waitForSelector('text=Hello ada');
  });
  afterAll(() => stack.disposeAsync());

  test('users log in, and each sees their own chats', async () => {
    const { id, page } = await shop.open();
    await say(page, 'Good morning');
    await page.waitForSelector('article.assistant');
    await isReady(page);
    const other = await (await shop.browser.newContext()).newPage();
    const refused = await other.request.post(shop.toAddress('/api/chat'), { data: { id, messages: [] } });
    expect(refused.status()).toBe(401);
    await other.goto(shop.toAddress(`/chat/${id}`));
    await logIn(other, 'bob', 'hidden');
    await other.waitForSelector('text=Hello bob');
    await other.goto(shop.toAddress(`/chat/${id}`));
    await isReady(other);
    expect(await other.locator('article').count()).toBe(0);
    await other.goto(shop.toAddress('/login', 1));
    await logIn(other, 'ada', 'guessed');
    await other.waitForSelector('text=That is not the password');
    await other.context().close();
    await page.goto(shop.toAddress('/', 1));
    await page.waitForSelector('text=Good morning');
  });

  test('a reply is there after a reload, through the other instance, and so is the next one', async () => {
    const { id, page } = await shop.open();
    await say(page, 'Good evening');
    await page.waitForSelector('article.assistant');
    await isReady(page);
    const said = await readReply(page);
    expect(said).not.toBe('');
    await visit(page, shop.toAddress(`/chat/${id}`, 1));
    expect(await readReply(page)).toBe(said);
    await say(page, 'Good night');
    await page.waitForSelector('article.assistant >> nth=1');
    await isReady(page);
    expect(JSON.parse(shop.readMessages(id))).toHaveLength(4);
  });

  test('a refund waits for a yes, also after a reload through the other instance, and is made once', async () => {
    const { id, page } = await shop.open();
    await say(page, 'Refund order 1');
    await page.waitForSelector('text=Refund order 1?');
    await isReady(page);
    expect(shop.readState(1)).toBe('paid');
    await visit(page, shop.toAddress(`/chat/${id}`, 1));
    await page.click('button:text("Yes")');
    await page.waitForSelector('text=refund: output-available');
    await isReady(page);
    expect(shop.readState(1)).toBe('refunded');
    expect(shop.log().filter((what) => what === 'refund 1')).toHaveLength(1);
    await until(() => shop.readMessages(id).includes('output-available'));
  });

  test('a no refunds nothing', async () => {
    const { id, page } = await shop.open();
    await say(page, 'Refund order 2');
    await page.click('button:text("No")');
    await page.waitForSelector('text=refund: output-denied');
    await isReady(page);
    expect(shop.readState(2)).toBe('paid');
    await until(() => shop.readMessages(id).includes('output-denied'));
  });

  test('the page runs the tool that only it can run, and the reply continues', async () => {
    const { id, page } = await shop.open();
    await say(page, 'Which time zone am I in?');
    await page.waitForSelector('text=time_zone: Europe/Oslo');
    await page.waitForSelector('article.assistant p:not(:empty)');
    await isReady(page);
    await until(() => shop.readMessages(id).includes('Europe/Oslo'));
  });

  test.skipIf(IS_REAL)('a picture is sent as an address, and shown after a reload', async () => {
    const { id, page } = await shop.open();
    const bytes = Buffer.from(PIXEL, 'base64');
    await page.setInputFiles('[type=file]', { name: 'lamp.png', mimeType: 'image/png', buffer: bytes });
    await say(page, 'What is this?');
    await page.waitForSelector('text=I see a picture.');
    await isReady(page);
    const sent = JSON.stringify(shop.provider.requests.at(-1)!.body);
    expect(/"url":"[^"]+"/.exec(sent)?.[0]).toMatch(/127\.0\.0\.1:\d+\/api\/files\/[\w-]+"$/);
    await visit(page, shop.toAddress(`/chat/${id}`, 1));
    const shown = await page.waitForSelector('article.user img');
    expect(await shown.evaluate((image) => (image as HTMLImageElement).decode().then(() => true))).toBe(true);
  });

  test(`Stop during a search ${isAfter ? 'ends it, and nothing else starts' : 'does not end it'}`, async () => {
    const { id, page } = await shop.open();
    const [before, requests] = [shop.log().length, shop.provider.requests.length];
    await say(page, 'Find my lamp');
    await until(() => shop.log().length === before + 1);
    await stopButton(page).click();
    await isReady(page);
    await until(() => shop.log().length === before + 2);
    expect(shop.log().at(-1)).toBe(isAfter ? 'search stopped' : 'search ended');
    if (!isAfter) {
      // The model is called again, for a reply that no one waits for.
      if (!IS_REAL) await shop.provider.waitForRequest(requests + 1);
      return;
    }
    await page.waitForSelector('text=Stopped');
    if (!IS_REAL) expect(shop.provider.requests).toHaveLength(requests + 1);
    await visit(page, shop.toAddress(`/chat/${id}`, 1));
    await page.waitForSelector('text=Stopped');
    if (!IS_REAL) expect(await readReply(page)).toContain('One moment.');
    // The chat continues.
    await say(page, 'Good morning');
    await page.waitForSelector('article.assistant >> nth=1');
    await isReady(page);
  });

  test(`after a reload, ${isAfter ? 'Stop ends the reply and keeps its text' : 'there is no Stop'}`, async () => {
    const { id, page } = await shop.open();
    await say(page, 'Tell me a story of 1,000 words');
    await page.waitForSelector('article.assistant p:not(:empty)');
    await visit(page, shop.toAddress(`/chat/${id}`, 1));
    if (!isAfter) {
      await isReady(page);
      expect(await stopButton(page).count()).toBe(0);
      expect(await page.locator('article').count()).toBe(0);
      shop.letGo();
      await until(() => shop.readMessages(id) !== '');
      return;
    }
    await page.waitForSelector('article.assistant p:not(:empty)');
    await stopButton(page).click();
    await page.waitForSelector('text=Stopped');
    await isReady(page);
    await shop.provider.waitForIdle();
    await visit(page, shop.toAddress(`/chat/${id}`));
    await page.waitForSelector('text=Stopped');
    if (!IS_REAL) expect(await readReply(page)).toMatch(/^Once upon a time\s+Stopped$/);
  });

  test('the model never got a history that a provider refuses', () => {
    expect(shop.provider.requests.map(({ refusal }) => refusal).filter(Boolean)).toEqual([]);
  });
});
