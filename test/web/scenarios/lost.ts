// Instances that end in the middle of a reply.
/* oxlint-disable vitest/no-standalone-expect -- scenarios are played in tests */
import { expect } from 'vitest';
import { ALL, HALF } from '../browser.ts';
import { callIs, calling, goesOn, half, isQuiet, lastStored, type Scenario } from './acts.ts';
import type { Site, Stage } from './stage.ts';

export const LOST: readonly Scenario[] = [
  ...(['SIGTERM', 'SIGKILL'] as const).map((signal) => ({
    name: `${signal} in the middle of a reply: the page goes on by itself`,
    isAlone: true,
    async play(site: Site, stage: Stage) {
      const chat = await half(site);
      await stage.end(site, signal);
      // An agent that is asked to end keeps what it said, and its model is told to go on from there.
      const text = stage.kind === 'agent' && signal === 'SIGTERM' ? HALF + ALL : ALL;
      await chat.shows(text);
      await isQuiet(chat);
      expect(await chat.replies()).toEqual([text]);
      expect(await chat.finishes()).toMatchObject([{ isAbort: false, isError: false }]);
    },
  })),
  {
    name: 'stop after SIGKILL: the page shows how it settled',
    isAlone: true,
    async play(site, stage) {
      const chat = await calling(site, 'deaf');
      await stage.end(site, 'SIGKILL');
      await chat.page.click('button');
      await callIs(chat, 'output-error');
      await isQuiet(chat);
      expect(await lastStored(site)).toContain('Outcome unknown');
      await goesOn(chat, site);
    },
  },
];
