// A booking above a price waits overnight for the owner's yes, in SQLite, while no instance of the bot runs.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createScriptedModel, createVirtualWorld } from '@whoa/core/testing';
import { createSqliteStore } from '@whoa/tasks/internal';
import { expect, test } from 'vitest';
import { Calendar } from '../../examples/apps/booking-bot/calendar.ts';
import { until } from '../promises/fixture.ts';

/** Not by name: it declares what a context is, for all that is compiled with it. */
const BOT: string = '../../examples/apps/booking-bot/bot.ts';

interface Bot extends AsyncDisposable {
  take(delivery: { messageId: string; from: string; to: string; text: string }): boolean;
}

const { createBot } = (await import(BOT)) as { createBot: (options: object) => Bot };

const NIGHT_MS = 12 * 3_600_000;
const OWNER = '+47 1';

/** One town over several days, in which the bot is started and stopped. */
function openTown() {
  const stack = new DisposableStack();
  const folder = mkdtempSync(join(tmpdir(), 'whoa-overnight-'));
  stack.defer(() => rmSync(folder, { recursive: true }));
  const calendar = stack.use(new Calendar({ file: join(folder, 'bookings.db'), latencyMs: 0 }));
  const world = createVirtualWorld();
  const sent: string[] = [];
  let [instances, messages] = [0, 0];
  const open = () => {
    const store = createSqliteStore({ file: join(folder, 'tasks.db'), world });
    const model = createScriptedModel([
      ({ messages: said }) => {
        const last = said.at(-1)!;
        if (last.role === 'tool') return [`Done: ${last.content as string}`];
        return [{ call: 'book', input: { at: /\d\d:\d\d/.exec(JSON.stringify(last.content))![0] } }];
      },
    ]);
    const send = (to: string, text: string): Promise<unknown> => Promise.resolve(sent.push(`${to}: ${text}`));
    const owners = new Map([[OWNER, 'dr-berg']]);
    const bot = createBot({ instance: `bot-${++instances}`, store, model, calendar, owners, send, world });
    return {
      store,
      deliver: (from: string, text: string) => bot.take({ messageId: `m${++messages}`, from, to: OWNER, text }),
      async [Symbol.asyncDispose]() {
        await bot[Symbol.asyncDispose]();
        await store[Symbol.asyncDispose]();
      },
    };
  };
  const state = (at: string) => calendar.slots('dr-berg').find((slot) => slot.at === at)?.state;
  return { world, calendar, sent, open, state, [Symbol.dispose]: () => stack.dispose() };
}

test.each([
  ['Yes', 'booked', 'ada: Done: 15:00 is booked for ada.'],
  ['no, I am away', 'free', 'ada: Done: Not started: denied: I am away'],
])('an expensive booking, and the owner says %s in the morning', async (answer, state, told) => {
  using town = openTown();
  const { world, sent, calendar } = town;
  {
    await using evening = town.open();
    evening.deliver('bob', 'Book 09:00');
    await until(() => town.state('09:00') === 'booked');
    evening.deliver('ada', 'Book 15:00');
    await until(() => sent.length === 3);
    expect(sent).toEqual([
      'bob: Done: 09:00 is booked for bob.',
      `${OWNER}: ada wrote: Book 15:00. That is expensive: answer yes, or no and why.`,
      'ada: I have asked dr-berg, and tell you what they say.',
    ]);
    const { questions } = await evening.store.questions({ tenant: 'default' });
    const [question] = questions;
    const id = question!.id.slice(0, question!.id.lastIndexOf('.'));
    expect(await evening.store.get({ tenant: 'default', id })).toMatchObject({ stage: 'parked', waiting: 1 });
  }
  await world.clock.advance(NIGHT_MS);
  await using morning = town.open();
  expect(town.state('15:00')).toBe('free');
  morning.deliver(OWNER, 'Good morning');
  await until(() => sent.length === 4);
  expect(sent[3]).toMatch(/ada wrote: Book 15:00\. That is expensive/);
  morning.deliver(OWNER, answer);
  await until(() => sent.length === 6);
  expect(sent.slice(4).toSorted()).toEqual([`${OWNER}: ada gets a message.`, told].toSorted());
  expect(town.state('15:00')).toBe(state);
  expect(calendar.log('dr-berg').filter((what) => what === 'book 15:00 done')).toHaveLength(state === 'booked' ? 1 : 0);
  morning.deliver(OWNER, 'yes');
  await until(() => sent.length === 7);
  expect(sent[6]).toBe(`${OWNER}: Nothing waits for you.`);
});
