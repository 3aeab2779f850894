// Reading: reloads, lost networks, and every kind of reply.
/* oxlint-disable vitest/no-standalone-expect -- scenarios are played in tests */
import { setTimeout as wait } from 'node:timers/promises';
import { expect } from 'vitest';
import { ALL, HALF } from '../browser.ts';
import type { ChatWindow } from '../page.ts';
import { half, isQuiet, type Scenario, said } from './acts.ts';
import { type Site, untilStored } from './harness.ts';
import { HUGE, LINE, UNICODE } from './script.ts';

export const READING: readonly Scenario[] = [
  {
    name: 'reload: the reply goes on without a gap or a repeat',
    async run(site) {
      const chat = await half(site);
      await chat.page.reload();
      await chat.shows(HALF);
      site.release();
      await chat.shows(ALL);
      await isQuiet(chat);
      expect(await chat.replies()).toEqual([ALL]);
    },
  },
  {
    name: 'a closed tab stops nothing',
    async run(site) {
      const chat = await half(site);
      await chat.page.close();
      site.release();
      await untilStored(site, ALL);
    },
  },
  ...[1, 10, 60].map((seconds) => ({
    name: `the network is cut for ${seconds} s`,
    isLong: seconds > 1,
    async run(site: Site) {
      const chat = await half(site);
      site.cut(true);
      await chat.page.waitForSelector('#reconnecting', { state: 'attached' });
      await wait(seconds * 1_000);
      site.release();
      site.cut(false);
      await chat.shows(ALL);
      await isQuiet(chat);
      expect(await chat.replies()).toEqual([ALL]);
      expect(await chat.finishes()).toMatchObject([{ isAbort: false, isError: false }]);
    },
  })),
  {
    name: 'a long reply: reloaded in the middle, and whole',
    async run(site) {
      const chat = await said(site, 'huge');
      await chat.page.waitForFunction(() => (document.querySelector('p.assistant')?.textContent ?? '').length > 50_000);
      await chat.page.reload();
      await chat.shows(HUGE.join(''));
      await isQuiet(chat);
    },
  },
  {
    name: 'a long reply: stopped in the middle',
    async run(site) {
      const chat = await said(site, 'huge');
      await chat.page.waitForFunction(() => (document.querySelector('p.assistant')?.textContent ?? '').length > 50_000);
      await chat.page.click('button');
      await isQuiet(chat);
      const [shown = ''] = await chat.replies();
      expect(HUGE.join('').startsWith(shown)).toBe(true);
      await untilStored(site, shown);
    },
  },
  {
    name: 'a line of 200 KB, and every kind of character',
    async run(site) {
      const chat = await said(site, 'line');
      await chat.shows(`${LINE} end`);
      await isQuiet(chat);
      await chat.send(`unicode ${site.id}`);
      await chat.shows(UNICODE.join(''));
      expect(await chat.page.evaluate(() => 'xss' in window)).toBe(false);
    },
  },
  {
    name: 'the provider breaks off: what was said stays, and the next message is answered',
    async run(site) {
      const chat = await said(site, 'break');
      await chat.status('error');
      expect(await chat.replies()).toEqual(['one two ']);
      await chat.send(`all ${site.id}`);
      await chat.shows(ALL);
      await chat.status('ready');
    },
  },
  {
    name: 'an attached picture reaches the model',
    async run(site) {
      const chat = await site.page();
      await chat.page.evaluate((text) => {
        const url = 'data:image/png;base64,iVBORw0KGgo=';
        const files = [{ type: 'file' as const, mediaType: 'image/png', url }];
        (window as unknown as ChatWindow).chat.sendMessage({ text, files }).catch(() => {});
      }, `all ${site.id}`);
      await chat.shows(ALL);
      expect(site.told()).toContain('iVBORw0KGgo=');
    },
  },
];
