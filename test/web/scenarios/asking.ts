// Calls that wait for a person or run in the page.
/* oxlint-disable vitest/no-standalone-expect -- scenarios are played in tests */
import { expect } from 'vitest';
import { ALL } from '../browser.ts';
import { approve, callIs, calling, goesOn, isQuiet, located, REPLY_ONLY, type Scenario } from './acts.ts';
import type { Site } from './harness.ts';
import { CALLING } from './script.ts';

export const ASKING: readonly Scenario[] = [
  ...[true, false].map((approved) => ({
    name: `a question is answered with ${approved ? 'yes' : 'no'}`,
    kinds: REPLY_ONLY,
    async run(site: Site) {
      const chat = await calling(site, 'pay', 'approval-requested');
      await isQuiet(chat);
      await approve(chat, approved);
      await chat.shows(CALLING + ALL);
      await callIs(chat, approved ? 'output-available' : 'output-denied');
      await isQuiet(chat);
      expect(site.effects).toEqual(approved ? ['pay started', 'pay ended'] : []);
    },
  })),
  {
    name: 'a question is stopped: it was not started, and nobody said no',
    kinds: REPLY_ONLY,
    async run(site) {
      const chat = await calling(site, 'pay', 'approval-requested');
      await chat.status('ready');
      await chat.page.click('button');
      await callIs(chat, 'output-error');
      await goesOn(chat, site);
      expect(site.told()).toContain('Not started: cancelled (user)');
      expect(site.effects).toEqual([]);
    },
  },
  {
    name: 'a question is answered in another tab, and too late in another browser',
    kinds: REPLY_ONLY,
    async run(site) {
      const tab = await site.page();
      const chat = await calling(site, 'pay', 'approval-requested');
      const other = await site.elsewhere();
      for (const one of [tab, other]) await callIs(one, 'approval-requested');
      await isQuiet(tab);
      await approve(tab, true);
      for (const one of [tab, chat]) await one.shows(CALLING + ALL);
      await approve(other, false);
      for (const one of [tab, chat, other]) {
        await one.shows(CALLING + ALL);
        await callIs(one, 'output-available');
        await isQuiet(one);
      }
      expect(site.effects).toEqual(['pay started', 'pay ended']);
    },
  },
  {
    name: 'a question is answered after a deploy',
    kinds: REPLY_ONLY,
    isAlone: true,
    async run(site, harness) {
      const chat = await calling(site, 'pay', 'approval-requested');
      await chat.status('ready');
      for (const instance of [0, 1]) {
        await harness.end(instance, 'SIGTERM');
        await harness.heal();
      }
      await approve(chat, true);
      await chat.shows(CALLING + ALL);
      await isQuiet(chat);
      expect(site.effects).toEqual(['pay started', 'pay ended']);
    },
  },
  {
    name: 'a tool of the page is answered',
    kinds: REPLY_ONLY,
    async run(site) {
      const chat = await calling(site, 'locate');
      await isQuiet(chat);
      await located(chat, { output: 'Oslo' });
      await chat.shows(CALLING + ALL);
      await isQuiet(chat);
      expect(site.told()).toContain('Oslo');
    },
  },
  {
    name: 'a tool of the page fails',
    kinds: REPLY_ONLY,
    async run(site) {
      const chat = await calling(site, 'locate');
      await chat.status('ready');
      await located(chat, { state: 'output-error', errorText: 'switched off' });
      await chat.shows(CALLING + ALL);
      await isQuiet(chat);
      expect(site.told()).toContain('switched off');
    },
  },
  {
    name: 'a tool of the page is stopped, from another tab',
    kinds: REPLY_ONLY,
    async run(site) {
      const other = await site.page();
      const chat = await calling(site, 'locate');
      await callIs(other, 'input-available');
      await isQuiet(other);
      await other.page.click('button');
      for (const one of [chat, other]) await callIs(one, 'output-error');
      expect(await chat.evaluate((page) => page.inPage)).toEqual(['locate started', 'locate stopped: AbortError']);
      await goesOn(chat, site);
      expect(site.told()).toContain('Outcome unknown');
    },
  },
];
