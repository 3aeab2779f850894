// Watching: what another browser shows that had the chat open before, and what it can stop.
/* oxlint-disable vitest/no-standalone-expect -- scenarios are played in tests */
import { expect } from 'vitest';
import { until } from '../../promises/fixture.ts';
import { ALL, HALF } from '../browser.ts';
import type { ChatPage } from '../chat-page.ts';
import { approve, callIs, half, isQuiet, located, REPLY_ONLY, type Scenario } from './acts.ts';
import type { Site } from './harness.ts';
import { CALLING } from './script.ts';

/** A phone that shows the chat, and then a page of another browser that says something. */
async function beside(site: Site, what: string): Promise<{ readonly phone: ChatPage; readonly chat: ChatPage }> {
  const phone = await site.elsewhere();
  const chat = await site.page();
  await chat.send(`${what} ${site.id}`);
  return { phone, chat };
}

export const WATCHING: readonly Scenario[] = [
  {
    name: 'a phone that had the chat open sees the reply, and stops it',
    async run(site) {
      const phone = await site.elsewhere();
      const chat = await half(site);
      await phone.shows(HALF);
      await phone.page.click('button');
      for (const one of [phone, chat]) await isQuiet(one);
      expect([await chat.replies(), await phone.replies()]).toEqual([[HALF], [HALF]]);
    },
  },
  {
    name: 'a phone and a page take turns, and each sees what the other says',
    async run(site) {
      const { phone, chat } = await beside(site, 'all');
      for (const [index, one] of [phone, chat, phone].entries()) {
        for (const other of [phone, chat]) {
          await until(async () => (await other.replies()).length === index + 1);
          await other.shows(ALL);
          await isQuiet(other);
        }
        await one.send(`all ${site.id}`);
      }
      for (const one of [phone, chat]) await until(async () => (await one.replies()).length === 4);
    },
  },
  {
    name: 'a question that is answered on the phone continues in the page that asked',
    kinds: REPLY_ONLY,
    async run(site) {
      const { phone, chat } = await beside(site, 'call pay');
      for (const one of [chat, phone]) await callIs(one, 'approval-requested');
      await phone.status('ready');
      await approve(phone, true);
      site.release();
      for (const one of [phone, chat]) await one.shows(CALLING + ALL);
      expect(site.effects).toEqual(['pay started', 'pay ended']);
    },
  },
  {
    name: 'a tool runs in the page that asked, and not on a phone that looks on',
    kinds: REPLY_ONLY,
    async run(site) {
      const { phone, chat } = await beside(site, 'call locate');
      for (const one of [chat, phone]) await callIs(one, 'input-available');
      await phone.status('ready');
      await located(chat, { output: 'Oslo' });
      for (const one of [phone, chat]) await one.shows(CALLING + ALL);
      const inPage = await Promise.all([chat, phone].map((one) => one.evaluate((page) => page.inPage)));
      expect(inPage).toEqual([['locate started'], []]);
    },
  },
  {
    name: 'a question that is stopped on the phone closes in the page that asked',
    kinds: REPLY_ONLY,
    async run(site) {
      const { phone, chat } = await beside(site, 'call pay');
      for (const one of [chat, phone]) await callIs(one, 'approval-requested');
      await phone.status('ready');
      await phone.page.click('button');
      for (const one of [phone, chat]) await callIs(one, 'output-error');
      expect(site.effects).toEqual([]);
    },
  },
];
