// Tabs of one browser that show the same chat, over HTTP/1.1: a browser opens six connections to a host.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { forChange } from '../night.ts';
import { ALL, HALF, type Lab, openLab } from './browser.ts';
import type { ChatPage } from './chat-page.ts';

const TABS = 10;

let lab: Lab;
beforeAll(async () => {
  lab = await openLab();
});
afterAll(() => lab[Symbol.asyncDispose]());

const readReplies = (chat: ChatPage): Promise<readonly string[]> =>
  chat.page.$$eval('p.user', (all) => all.map(({ textContent }) => textContent ?? ''));

const MODES = [
  ['once', {}],
  ['in StrictMode', { strict: true }],
] as const;

test.for(forChange(MODES, (_, index) => index === 0))(
  'an older tab sees the reply to another tab’s message, and its Stop stops it (%s)',
  async ([, mode]) => {
    await using site = lab.open(mode);
    const [one, other] = [await site.page(), await site.page()];
    await one.send(`say half ${site.id}`);
    await other.shows(HALF);
    expect(await readReplies(other)).toEqual([`say half ${site.id}`]);
    await other.stop();
    expect([await site.ends(), site.stops()]).toEqual([['cancelled'], 1]);
    for (const chat of [one, other]) {
      await chat.page.waitForSelector('footer');
      await chat.status('ready');
      expect(await chat.replies()).toEqual([HALF]);
      expect(await chat.evaluate((page) => page.errors)).toEqual([]);
    }
    // And the other way round.
    await other.send(`say all ${site.id}`);
    await one.shows(ALL);
    expect(await readReplies(one)).toHaveLength(2);
  },
);

test(`${TABS} tabs see one reply, and the last one stops it`, async () => {
  await using site = lab.open();
  const tabs: ChatPage[] = [];
  for (let index = 0; index < TABS; index++) tabs.push(await site.page());
  await tabs[0]!.send(`say half ${site.id}`);
  for (const chat of tabs) await chat.shows(HALF);
  await tabs.at(-1)!.stop();
  expect([await site.ends(), site.stops()]).toEqual([['cancelled'], 1]);
  for (const chat of tabs) await chat.status('ready');
});

test('other tabs continue reading without a gap or a repeat when the tab that sent the message is closed', async () => {
  await using site = lab.open();
  const [one, other] = [await site.page(), await site.page()];
  await one.send(`say half ${site.id}`);
  await other.shows(HALF);
  await one.page.close();
  site.release();
  await other.shows(ALL);
  await other.status('ready');
  expect(await other.replies()).toEqual([ALL]);
  expect(await other.evaluate((page) => page.errors)).toEqual([]);
});

test('a newer message of another tab replaces the reply that this one reads, and is shown here', async () => {
  await using site = lab.open();
  const [one, other] = [await site.page(), await site.page()];
  await one.send(`say half ${site.id}`);
  await other.shows(HALF);
  await other.send(`say all ${site.id}`);
  await one.shows(ALL);
  await one.status('ready');
  expect(await one.replies()).toEqual([HALF, ALL]);
  expect(await site.ends()).toEqual(['cancelled', 'success']);
});
