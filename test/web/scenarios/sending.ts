// What a user does while the server is away, or in a page that is loaded again.
/* oxlint-disable vitest/no-standalone-expect -- scenarios are played in tests */
import { setTimeout as wait } from 'node:timers/promises';
import type { Route } from 'playwright-core';
import { expect } from 'vitest';
import { until } from '../../promises/fixture.ts';
import { ALL, HALF } from '../browser.ts';
import type { ChatPage } from '../chat-page.ts';
import type { ChatWindow } from '../page.ts';
import { approve, callIs, calling, goesOn, half, isQuiet, located, REPLY_ONLY, type Scenario, said } from './acts.ts';
import { type Site, untilStored } from './harness.ts';
import { CALLING } from './script.ts';

const isPending = (chat: ChatPage, kinds: readonly string[]) =>
  until(async () => {
    const pending = await chat.evaluate((page) =>
      (page.chat?.pending ?? []).map(({ kind, state }) => `${kind} ${state}`),
    );
    return JSON.stringify(pending) === JSON.stringify(kinds.map((kind) => `${kind} waiting`));
  });

/** Loses requests of a page that end like this, until what it returns is called. */
async function lose({ page }: ChatPage, end: string): Promise<() => Promise<void>> {
  const abort = (route: Route): Promise<void> =>
    route.request().method() === 'POST' ? route.abort('internetdisconnected') : route.continue();
  await page.route(end, abort);
  return async () => {
    await page.unroute(end, abort);
    await page.evaluate(() => dispatchEvent(new Event('online')));
  };
}

export const SENDING: readonly Scenario[] = [
  ...[1, 10, 60].map((seconds) => ({
    name: `stop while the server is away for ${seconds} s`,
    isLong: seconds > 1,
    async run(site: Site) {
      const chat = await calling(site, 'look');
      site.cut(true);
      await chat.page.click('button');
      await isPending(chat, ['stop']);
      await wait(seconds * 1_000);
      expect(site.effects).toEqual(['look started']);
      site.cut(false);
      await until(() => site.effects.includes('look left'));
      await chat.page.waitForSelector('#stopping', { state: 'detached' });
      await isQuiet(chat);
      await goesOn(chat, site);
    },
  })),
  {
    name: 'stop while every packet is lost for 60 s',
    isLong: true,
    async run(site) {
      const chat = await calling(site, 'look');
      site.silence(true);
      await chat.page.click('button');
      await wait(60_000);
      site.silence(false);
      await until(() => site.effects.includes('look left'));
      await chat.page.waitForSelector('#stopping', { state: 'detached' });
      await isQuiet(chat);
    },
  },
  {
    name: 'a yes while the server is away counts once',
    kinds: REPLY_ONLY,
    async run(site) {
      const chat = await calling(site, 'pay', 'approval-requested');
      await chat.status('ready');
      site.cut(true);
      await approve(chat, true);
      await isPending(chat, ['answer']);
      site.cut(false);
      await chat.shows(CALLING + ALL);
      await isQuiet(chat);
      expect(site.effects).toEqual(['pay started', 'pay ended']);
    },
  },
  {
    name: 'the output of a tool of the page while the server is away',
    kinds: REPLY_ONLY,
    async run(site) {
      const chat = await calling(site, 'locate');
      await chat.status('ready');
      site.cut(true);
      await located(chat, { output: 'Oslo' });
      await isPending(chat, ['output']);
      site.cut(false);
      await chat.shows(CALLING + ALL);
      await isQuiet(chat);
      expect(site.told()).toContain('Oslo');
    },
  },
  {
    name: 'a message while the server is away is answered when it is back',
    async run(site) {
      const chat = await site.page();
      site.cut(true);
      await chat.send(`all ${site.id}`);
      await isPending(chat, ['send']);
      site.cut(false);
      await chat.shows(ALL);
      await isQuiet(chat);
    },
  },
  {
    name: 'a message before the reply to the last one has a word: the page shows them in the order of the server',
    async run(site) {
      const chat = await said(site, 'stall');
      await until(() => site.told() !== '');
      await chat.send(`all ${site.id}`);
      await chat.shows(ALL);
      await isQuiet(chat);
      expect((await site.messages()).map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant']);
    },
  },
  ...[0, 700].map((ms) => ({
    name: `messages before the reply to the last one has a word, ${ms} ms apart, and the newest asks the page`,
    kinds: REPLY_ONLY,
    isLong: ms > 0,
    async run(site: Site) {
      const chat = await said(site, 'stall');
      await until(() => site.told() !== '');
      await chat.page.click('button');
      for (const what of ['stall', 'call pay', 'call locate']) {
        await wait(ms);
        await chat.send(`${what} ${site.id} again`);
      }
      await chat.page.waitForFunction(() =>
        (window as unknown as ChatWindow).chat.messages.at(-1)?.parts.some(({ type }) => type === 'tool-locate'),
      );
      await isQuiet(chat);
    },
  })),
  {
    name: 'a tab keeps what it said when an older answer of another one arrives',
    kinds: REPLY_ONLY,
    async run(site) {
      const asked = await calling(site, 'pay', 'approval-requested');
      await asked.status('ready');
      const chat = await site.page();
      const restore = await lose(asked, '**/api/chat');
      await approve(asked, true);
      await isPending(asked, ['answer']);
      await chat.send(`all ${site.id}`);
      await chat.shows(ALL);
      await isQuiet(chat);
      await restore();
      await isPending(asked, []);
      await callIs(asked, 'output-error');
      expect(site.effects).toEqual([]);
    },
  },
  {
    name: 'a message that was not sent yet is sent by the page that is loaded again',
    async run(site) {
      const chat = await said(site, 'all');
      await chat.shows(ALL);
      await isQuiet(chat);
      const restore = await lose(chat, '**/api/chat');
      await chat.send(`half ${site.id}`);
      await isPending(chat, ['send']);
      await chat.page.reload();
      await chat.page.waitForFunction(() => document.querySelectorAll('p.user').length === 2);
      await isPending(chat, ['send']);
      await restore();
      await chat.shows(HALF);
      site.release();
      await chat.shows(ALL);
      await isQuiet(chat);
    },
  },
  {
    name: 'a page that is loaded again shows a reply that ended before it was read',
    async run(site) {
      const chat = await said(site, 'all');
      await chat.shows(ALL);
      await isQuiet(chat);
      const restore = await lose(chat, '**/api/chat');
      await chat.send(`all ${site.id} again`);
      await isPending(chat, ['send']);
      const ended = Promise.withResolvers<void>();
      await chat.page.route('**/stream', (route) => ended.promise.then(() => route.continue()));
      await chat.page.reload();
      await isPending(chat, ['send']);
      await restore();
      await until(async () => (await site.messages()).length === 4);
      ended.resolve();
      await chat.page.waitForFunction(() => document.querySelectorAll('p.assistant').length === 2);
      await isQuiet(chat);
    },
  },
  {
    name: 'a stop that was not sent yet goes first in the page that is loaded again',
    async run(site) {
      const chat = await half(site);
      const restore = await lose(chat, '**/stop');
      await chat.page.click('button');
      await isPending(chat, ['stop']);
      const seen: string[] = [];
      chat.page.on('request', (request) => seen.push(new URL(request.url()).pathname.split('/').at(-1)!));
      await chat.page.reload();
      await isPending(chat, ['stop']);
      await restore();
      await untilStored(site, HALF);
      // The page reads when the stop's response has arrived, which may be after the server has stored the reply.
      await until(() => seen.includes('stream'));
      await isQuiet(chat);
      expect(seen.indexOf('stop')).toBeGreaterThan(-1);
      expect(seen.indexOf('stream')).toBeGreaterThan(seen.indexOf('stop'));
      await goesOn(chat, site);
    },
  },
  {
    name: 'a message that was refused while another user was logged in is shown no more when the first one is back',
    isAlone: true,
    async run(site) {
      const chat = await said(site, 'all');
      await chat.shows(ALL);
      await isQuiet(chat);
      await site.logIn('bob');
      try {
        await chat.send(`all ${site.id}`);
        await chat.status('error');
        expect(await chat.evaluate((page) => page.chat.error?.message)).toContain('Another user has logged in');
      } finally {
        await site.logIn('ada');
      }
      await chat.page.waitForFunction(() => document.querySelectorAll('p.user').length === 1);
    },
  },
  {
    name: 'a message that is given up is shown no more',
    async run(site) {
      const chat = await site.page();
      const restore = await lose(chat, '**/api/chat');
      await chat.send(`all ${site.id}`);
      await isPending(chat, ['send']);
      await chat.evaluate((page) => page.chat.giveUp(page.chat.pending[0]!.id));
      await chat.page.waitForFunction(() => document.querySelectorAll('p.user').length === 0);
      await restore();
      await goesOn(chat, site);
    },
  },
  {
    name: 'a message instead of an answer: the page offers the answer no more',
    kinds: REPLY_ONLY,
    async run(site) {
      const chat = await calling(site, 'pay', 'approval-requested');
      await chat.status('ready');
      await goesOn(chat, site);
      await callIs(chat, 'output-error');
      expect(site.effects).toEqual([]);
    },
  },
  ...['half', 'call pay'].map((what) => ({
    name: `rollback of '${what}': the page shows the turn no more`,
    kinds: REPLY_ONLY,
    async run(site: Site) {
      const chat = what === 'half' ? await half(site) : await calling(site, 'pay', 'approval-requested');
      const receipt = await chat.evaluate((page) => page.chat.stop({ rollback: true }));
      expect(receipt).toMatchObject({ rolledBack: true });
      await chat.page.waitForFunction(() => document.querySelectorAll('p').length === 0);
      await isQuiet(chat);
      expect(await site.messages()).toEqual([]);
    },
  })),
];
