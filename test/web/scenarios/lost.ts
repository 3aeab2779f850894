// Instances that end mid-reply.
/* oxlint-disable vitest/no-standalone-expect -- scenarios are played in tests */
import { expect } from 'vitest';
import { ALL, HALF } from '../browser.ts';
import { callIs, calling, goesOn, half, isQuiet, lastStored, type Scenario } from './acts.ts';
import type { Site, WebHarness } from './harness.ts';

export const LOST: readonly Scenario[] = [
  ...(['SIGTERM', 'SIGKILL'] as const).map((signal) => ({
    name: `${signal} in the middle of a reply: the page goes on by itself`,
    isAlone: true,
    async run(site: Site, harness: WebHarness) {
      const chat = await half(site);
      await harness.end(site, signal);
      // An agent that is asked to end keeps its text, and its model continues from there.
      const text = harness.kind === 'agent' && signal === 'SIGTERM' ? HALF + ALL : ALL;
      await chat.shows(text);
      await isQuiet(chat);
      expect(await chat.replies()).toEqual([text]);
      expect(await chat.finishes()).toMatchObject([{ isAbort: false, isError: false }]);
    },
  })),
  {
    name: 'stop after SIGKILL: the page shows how it settled',
    isAlone: true,
    async run(site, harness) {
      const chat = await calling(site, 'deaf');
      await harness.end(site, 'SIGKILL');
      await chat.page.click('button');
      await callIs(chat, 'output-error');
      await isQuiet(chat);
      expect(await lastStored(site)).toContain('Outcome unknown');
      await goesOn(chat, site);
    },
  },
];
