// Attacks on the shop chat with Whoa: stops and answers at bad moments, expired sessions, and uploads without an end.
import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../promises/fixture.ts';
import { borrowPostgres } from '../servers/borrow.ts';
import { FOLDER, IS_REAL, isReady, logIn, openShop, readReply, type Shop, say, stopButton, visit } from './shop.ts';

const YES = 'button:text("Yes, refund it")';

describe.skipIf(FOLDER === undefined || IS_REAL)('an attacked shop chat', () => {
  const stack = new AsyncDisposableStack();
  let shop: Shop;
  let orders: number;

  beforeAll(async () => {
    const { url } = stack.use(await borrowPostgres());
    shop = stack.use(await openShop('after', url));
    const page = await shop.context.newPage();
    await page.goto(shop.toAddress('/'));
    await logIn(page, 'ada', 'secret');
    await page.waitForSelector('text=Hello ada');
    orders = 2;
  });
  afterAll(() => stack.disposeAsync());

  /** Opens a chat that asks for a refund of a new order. */
  async function askForRefund() {
    const order = ++orders;
    shop.db.prepare("INSERT INTO orders VALUES (?, 'ada', 'sofa', 'paid')").run(order);
    const chat = await shop.open();
    await say(chat.page, `Refund order ${order}`);
    await chat.page.waitForSelector(YES);
    await isReady(chat.page);
    const refunds = () => shop.log().filter((what) => what === `refund ${order} started`).length;
    return { ...chat, order, refunds };
  }

  test('Stop while a refund is asked closes the question, and nothing is refunded', async () => {
    const { id, page, order, refunds } = await askForRefund();
    await stopButton(page).click();
    await page.waitForSelector('text=Not started');
    await isReady(page);
    expect(await page.locator(YES).count()).toBe(0);
    expect(await stopButton(page).count()).toBe(0);
    await visit(page, shop.toAddress(`/chat/${id}`, 1));
    await page.waitForSelector('text=Not started');
    expect([shop.readState(order), refunds()]).toEqual(['paid', 0]);
  });

  test('Stop while the bank refunds lets it finish, and the page shows that it was made', async () => {
    const { id, page, order, refunds } = await askForRefund();
    await page.click(YES);
    await until(() => refunds() === 1);
    await stopButton(page).click();
    await page.waitForSelector('text=Stopping…');
    await page.waitForSelector(`text=Order ${order} is refunded`);
    await page.waitForSelector('text=The refund was already decided, so it was finished.');
    await isReady(page);
    expect(shop.readState(order)).toBe('refunded');
    await visit(page, shop.toAddress(`/chat/${id}`, 1));
    await page.waitForSelector('text=The refund was already decided, so it was finished.');
  });

  test('an answer that is given again shows the refund of the first, and makes no other', async () => {
    const { id, page, order, refunds } = await askForRefund();
    await page.click(YES);
    await page.waitForSelector(`text=Order ${order} is refunded`);
    await isReady(page);
    await page.click('text=Answer again');
    await until(() => shop.readMessages(id).includes('replaced-calls'));
    await visit(page, shop.toAddress(`/chat/${id}`));
    await page.waitForSelector('text=Done before this answer');
    await page.waitForSelector(`article.user >> text=The refund: Order ${order} is refunded`);
    expect(refunds()).toBe(1);
    await stopButton(page).click();
    await isReady(page);
  });

  test('two clicks on Yes, and a Yes and a No in two tabs, refund at most once', async () => {
    const { page, order, refunds } = await askForRefund();
    await page.locator(YES).evaluate((button: HTMLElement) => {
      button.click();
      button.click();
    });
    await page.waitForSelector(`text=Order ${order} is refunded`);
    await isReady(page);
    expect(refunds()).toBe(1);
    const both = await askForRefund();
    const other = await shop.context.newPage();
    await visit(other, shop.toAddress(`/chat/${both.id}`, 1));
    await Promise.all([both.page.click(YES), other.click('button:text-is("No")').catch(() => {})]);
    for (const tab of [both.page, other]) await tab.waitForSelector(YES, { state: 'detached' });
    const ended = /Order \d+ is refunded|Not refunded/;
    for (const tab of [both.page, other]) await tab.getByText(ended).first().waitFor();
    const [first, second] = await Promise.all(
      [both.page, other].map(async (tab) => ended.exec(await readReply(tab))?.[0]),
    );
    expect(first).toBe(second);
    expect(both.refunds()).toBe(first === 'Not refunded' ? 0 : 1);
  });

  test('two chats that ask for the same refund make it once, and both show how theirs ended', async () => {
    const { page, order, refunds } = await askForRefund();
    const other = await shop.open();
    await say(other.page, `Refund order ${order}`);
    await other.page.waitForSelector(YES);
    await Promise.all([page.click(YES), other.page.click(YES)]);
    const all = [page, other.page];
    for (const tab of all)
      await tab
        .getByText(/is refunded|cannot be refunded/)
        .first()
        .waitFor();
    const ends = await Promise.all(all.map(async (tab) => /cannot be/.test(await readReply(tab))));
    expect(new Set(ends)).toEqual(new Set([false, true]));
    expect(refunds()).toBe(1);
  });

  test('a Yes without a network is shown as not sent, is sent later, and Stop before it wins', async () => {
    const { page, order, refunds } = await askForRefund();
    await shop.context.setOffline(true);
    await page.click(YES);
    await page.waitForSelector('text=Sending your yes');
    await page.waitForSelector('text=We keep trying');
    await shop.context.setOffline(false);
    await page.waitForSelector(`text=Order ${order} is refunded`);
    expect(refunds()).toBe(1);
  });

  test('a session that ends during a reply keeps the Stop until the customer has logged in again', async () => {
    const { page } = await shop.open();
    // It lasts until it is stopped, however long the login takes.
    await say(page, 'Tell me a story');
    await page.waitForSelector('article.assistant p:not(:empty)');
    shop.db.exec('UPDATE sessions SET ends = 0');
    await stopButton(page).click();
    await page.waitForSelector('text=You are logged out');
    const tab = await shop.context.newPage();
    await tab.goto(shop.toAddress('/'));
    expect(new URL(tab.url()).pathname).toBe('/login');
    await logIn(tab, 'ada', 'secret');
    await tab.waitForSelector('text=Hello ada');
    await page.waitForSelector('text=Stopped after');
    await isReady(page);
    expect(await page.locator('text=You are logged out').count()).toBe(0);
  });

  test('a log out ends the session for every copy of its cookie', async () => {
    const context = await shop.browser.newContext();
    const page = await context.newPage();
    await page.goto(shop.toAddress('/login'));
    await logIn(page, 'eve', 'hidden');
    await page.waitForSelector('text=Hello eve');
    const [cookie] = await context.cookies();
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Lax' });
    expect(cookie!.expires).toBeGreaterThan(0);
    await page.click('text=Log out');
    await page.waitForSelector('button:text("Log in")');
    const headers = { cookie: `session=${cookie!.value}` };
    expect((await fetch(shop.toAddress('/api/chat'), { headers })).status).toBe(401);
    await context.close();
  });

  test.each(['endless', 'lying'])('an %s upload is cut off at 5 MB and not stored', async (kind) => {
    const [cookie] = await shop.context.cookies();
    let sent = 0;
    const chunk = Buffer.alloc(64 * 1024);
    // 64 MB, without a length.
    const body = Readable.toWeb(
      Readable.from(
        (function* () {
          while (sent < 64 * 1024 * 1024) {
            sent += chunk.length;
            yield chunk;
          }
        })(),
      ),
    ) as ReadableStream;
    const headers = {
      cookie: `session=${cookie!.value}`,
      'content-type': kind === 'lying' ? 'image/jpeg' : 'image/png',
    };
    const upload = fetch(shop.toAddress('/api/files'), {
      method: 'POST',
      headers,
      body,
      duplex: 'half',
    } as RequestInit);
    expect(
      await upload.then(
        ({ status }) => status,
        () => 413,
      ),
    ).toBe(413);
    expect(shop.db.prepare('SELECT count(*) AS files FROM files').get()).toEqual({ files: 0 });
  });
});
