// The shop chat before and after. `npm run long -- apps` installs and builds them.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../promises/fixture.ts';
import { borrowPostgres } from '../servers/borrow.ts';
import {
  FOLDER,
  IS_REAL,
  isReady,
  logIn,
  openShop,
  PIXEL,
  readReply,
  type Shop,
  say,
  stopButton,
  visit,
} from './shop.ts';

const KINDS = {
  before: () => Promise.resolve({ url: undefined, [Symbol.asyncDispose]: () => Promise.resolve() }),
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
    await page.waitForSelector('text=Order 1 is refunded');
    await isReady(page);
    expect(shop.readState(1)).toBe('refunded');
    expect(shop.log().filter((what) => what === 'refund 1')).toHaveLength(1);
    await until(() => shop.readMessages(id).includes('output-available'));
  });

  test('a no refunds nothing', async () => {
    const { id, page } = await shop.open();
    await say(page, 'Refund order 2');
    await page.click('button:text("No")');
    await page.waitForSelector('text=Not refunded, because you said no');
    await isReady(page);
    expect(shop.readState(2)).toBe('paid');
    await until(() => shop.readMessages(id).includes('output-denied'));
  });

  test('the page runs the tool that only it can run, and the reply continues', async () => {
    const { id, page } = await shop.open();
    await say(page, 'Which time zone am I in?');
    await page.waitForSelector('text=Europe/Oslo');
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
    await page.waitForSelector('text=The search was interrupted.');
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
    if (!IS_REAL) expect(await readReply(page)).toMatch(/^Once upon a time\s+Stopped after [\d.]+ s$/);
  });

  test('the model never got a history that a provider refuses', () => {
    expect(shop.provider.requests.map(({ refusal }) => refusal).filter(Boolean)).toEqual([]);
  });
});
