// Stops: from anywhere, at any moment.
import { setTimeout as wait } from 'node:timers/promises';
import { expect } from 'vitest';
import { until } from '../../promises/fixture.ts';
import { ALL, HALF } from '../browser.ts';
import type { ChatPage } from '../chat-page.ts';
import { callIs, calling, goesOn, half, isQuiet, lastStored, type Scenario, said } from './acts.ts';
import { untilStored } from './harness.ts';

/** The page shows a call that must finish this long after the stop. */
const MUST_FINISH_MS = process.env['WHOA_WEB_LONG'] === undefined ? 4_000 : 20_000;
const TABS = 10;

export const STOPPING: readonly Scenario[] = [
  {
    name: 'stop: what was said stays, and the next message is answered',
    async run(site) {
      const chat = await half(site);
      await chat.page.click('button');
      await isQuiet(chat);
      await untilStored(site, HALF);
      expect(await lastStored(site)).toContain('data-stop-report');
      await goesOn(chat, site);
    },
  },
  {
    name: 'stop in another browser, through the other instance',
    async run(site) {
      const chat = await half(site);
      const other = await site.elsewhere();
      await other.shows(HALF);
      await other.page.click('button');
      for (const one of [other, chat]) await isQuiet(one);
      expect([await chat.replies(), await other.replies()]).toEqual([[HALF], [HALF]]);
    },
  },
  {
    name: 'a tab that was open before sees the reply, and stops it',
    async run(site) {
      const other = await site.page();
      const chat = await half(site);
      await other.shows(HALF);
      await other.page.click('button');
      for (const one of [other, chat]) await isQuiet(one);
      await untilStored(site, HALF);
    },
  },
  {
    name: 'a newer message of a tab that was open before replaces the reply',
    async run(site) {
      const other = await site.page();
      const chat = await half(site);
      await other.shows(HALF);
      await other.send(`all ${site.id}`);
      for (const one of [other, chat]) {
        await one.shows(ALL);
        await isQuiet(one);
        expect(await one.replies()).toEqual([HALF, ALL]);
      }
    },
  },
  {
    name: 'stop twice at once',
    async run(site) {
      const chat = await half(site);
      await chat.page.dblclick('button');
      await isQuiet(chat);
      await untilStored(site, HALF);
      expect((await lastStored(site)).match(/data-stop-report/g)).toHaveLength(1);
    },
  },
  {
    name: 'stop before the first word',
    async run(site) {
      const chat = await said(site, 'stall');
      await chat.page.click('button');
      await isQuiet(chat);
      await goesOn(chat, site);
    },
  },
  {
    name: 'stop while a tool runs that hears it',
    async run(site) {
      const chat = await calling(site, 'look');
      await chat.page.click('button');
      await isQuiet(chat);
      await until(() => site.effects.includes('look left'));
      await goesOn(chat, site);
      expect(site.told()).toContain('Interrupted (user)');
    },
  },
  {
    name: 'stop while a tool runs that does not hear it; what it did becomes known',
    async run(site) {
      const chat = await calling(site, 'deaf');
      await chat.page.click('button');
      await isQuiet(chat);
      expect(await lastStored(site)).toContain('Outcome unknown');
      site.release();
      await until(() => site.effects.includes('deaf ended'));
      await goesOn(chat, site);
      expect(site.told()).toMatch(/Outcome unknown|still finished later/);
    },
  },
  {
    name: 'stop while a call runs that must finish: the page shows it until it has',
    async run(site) {
      const chat = await calling(site, 'charge');
      await chat.page.click('button');
      await chat.page.waitForSelector('#stopping', { state: 'attached' });
      await wait(MUST_FINISH_MS);
      expect(await chat.page.textContent('code')).toBe('input-available');
      site.release();
      await callIs(chat, 'output-available');
      await chat.page.waitForSelector('#stopping', { state: 'detached' });
      await isQuiet(chat);
      expect(site.effects).toEqual(['charge started', 'charge ended']);
    },
  },
  {
    name: 'the next message while a stopped call must finish: it is told how that ended',
    async run(site) {
      const chat = await calling(site, 'charge');
      await chat.page.click('button');
      await chat.page.waitForSelector('#stopping', { state: 'attached' });
      await chat.send(`all ${site.id}`);
      site.release();
      await chat.shows(ALL);
      await isQuiet(chat);
      expect(site.told()).toContain('charge done');
    },
  },
  {
    name: 'two chats at once: the stop of one does not touch the other',
    async run(site, harness) {
      await using second = await harness.open();
      const [chat, other] = [await half(site), await half(second)];
      await chat.page.click('button');
      await isQuiet(chat);
      second.release();
      await other.shows(ALL);
      await isQuiet(other);
    },
  },
  {
    name: `${TABS} tabs: the Stop of each works`,
    isLong: true,
    async run(site) {
      const tabs: ChatPage[] = [];
      for (let index = 0; index < TABS; index++) tabs.push(await site.page());
      for (const [index, tab] of tabs.entries()) {
        await tabs[0]!.send(`half ${index} ${site.id}`);
        for (const one of tabs) await one.shows(HALF);
        await tab.evaluate((page) => void page.chat.stop());
        for (const one of tabs) await one.status('ready');
        expect(await tab.replies()).toHaveLength(index + 1);
      }
    },
  },
];
