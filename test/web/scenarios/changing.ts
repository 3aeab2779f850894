// A message that is edited or answered again while its reply does something.
/* oxlint-disable vitest/no-standalone-expect -- scenarios are played in tests */
import { expect } from 'vitest';
import { until } from '../../promises/fixture.ts';
import { ALL } from '../browser.ts';
import type { ChatPage } from '../chat-page.ts';
import { callIs, calling, edit, half, isQuiet, REPLY_ONLY, regenerate, type Scenario } from './acts.ts';
import { type Kind, type Site, toText, untilStored } from './harness.ts';
import { CALLING } from './script.ts';

/** The state of a reply when its message is changed, and how the test sees it. */
const DURING: Readonly<Record<string, { readonly kinds?: readonly Kind[]; begin: (site: Site) => Promise<ChatPage> }>> =
  {
    'its words': { begin: half },
    'a tool that hears the stop': { begin: (site) => calling(site, 'look') },
    'a call that must finish': { begin: (site) => calling(site, 'charge') },
    'a question': { kinds: REPLY_ONLY, begin: (site) => calling(site, 'pay', 'approval-requested') },
    'a tool of the page': { kinds: REPLY_ONLY, begin: (site) => calling(site, 'locate') },
  };

export const CHANGING: readonly Scenario[] = Object.entries(DURING).flatMap(([what, { kinds, begin }]): Scenario[] => [
  {
    name: `edit during ${what}`,
    ...(kinds && { kinds }),
    async run(site) {
      const chat = await begin(site);
      await edit(chat, `all ${site.id}`);
      site.release();
      await chat.shows(ALL);
      await isQuiet(chat);
      await untilStored(site, ALL);
      expect(await site.messages()).toHaveLength(2);
      expect(site.effects.filter((effect) => effect.endsWith('started')).length).toBeLessThanOrEqual(1);
    },
  },
  {
    name: `regenerate during ${what}`,
    ...(kinds && { kinds }),
    async run(site) {
      const chat = await begin(site);
      const before = site.effects.length;
      const first = await chat.evaluate((page) => page.chat.messages.at(-1)!.id);
      const isNew = async (): Promise<boolean> => {
        const last = (await site.messages()).at(-1);
        return last?.role === 'assistant' && last.id !== first;
      };
      await regenerate(chat);
      site.release();
      if (kinds === undefined) {
        await until(async () => (await isNew()) && toText((await site.messages()).at(-1)).endsWith(ALL));
        const text = what === 'its words' ? ALL : CALLING + ALL;
        await chat.shows(text);
        expect(site.effects.slice(before).filter((effect) => effect.endsWith('ended')).length).toBeLessThanOrEqual(2);
      } else {
        // The question is asked again, in a new reply.
        await until(isNew);
        await callIs(chat, what === 'a question' ? 'approval-requested' : 'input-available');
      }
      await isQuiet(chat);
      expect((await site.messages()).map(({ role }) => role)).toEqual(['user', 'assistant']);
    },
  },
]);
