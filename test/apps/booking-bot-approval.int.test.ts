// A booking above a price waits overnight for the owner's yes, in SQLite, while no instance of the bot runs.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createScriptedModel, createVirtualWorld } from '@whoa/core/testing';
import { createSqliteStore } from '@whoa/tasks/internal';
import { expect, test } from 'vitest';
import { Calendar } from '../../examples/apps/booking-bot/calendar.ts';
import { Notes } from '../../examples/apps/booking-bot/notes.ts';
import { until } from '../promises/fixture.ts';
import { alterStore } from '../tasks/altered-store.ts';

/** Not by name: it declares what a context is, for all that is compiled with it. */
const BOT: string = '../../examples/apps/booking-bot/bot.ts';

interface Bot extends AsyncDisposable {
  take(delivery: { messageId: string; from: string; to: string; text: string; replyTo?: string }): Promise<boolean>;
}

const { createBot } = (await import(BOT)) as { createBot: (options: object) => Bot };

const NIGHT_MS = 12 * 3_600_000;
const OWNER = '+47 1';
const OTHER = '+47 2';

/** One town over several days, in which the bot is started and stopped. */
function openTown() {
  const stack = new DisposableStack();
  const folder = mkdtempSync(join(tmpdir(), 'whoa-overnight-'));
  stack.defer(() => rmSync(folder, { recursive: true }));
  const calendar = stack.use(new Calendar({ file: join(folder, 'bookings.db'), latencyMs: 0 }));
  const notes = stack.use(new Notes(join(folder, 'bookings.db')));
  const world = createVirtualWorld();
  const sent: string[] = [];
  let [instances, messages] = [0, 0];
  let isStoreAway = false;
  let isHeard = (_to: string): boolean => true;
  let creating: Promise<unknown> | undefined;
  let sending: Promise<unknown> | undefined;
  const open = () => {
    const real = createSqliteStore({ file: join(folder, 'tasks.db'), world });
    const store = alterStore(real, async (method, call) => {
      if (isStoreAway) throw new Error('The store is away');
      if (method === 'create') await creating;
      return call();
    });
    const model = createScriptedModel([
      ({ messages: said }) => {
        const last = said.at(-1)!;
        if (last.role === 'tool') return [`Done: ${last.content as string}`];
        return [{ call: 'book', input: { at: /\d\d:\d\d/.exec(JSON.stringify(last.content))![0] } }];
      },
    ]);
    // The messenger's id of a message is its place.
    const send = async (to: string, text: string): Promise<string> => {
      await sending;
      if (!isHeard(to)) throw new Error(`The messenger does not reach ${to}`);
      return `sent-${sent.push(`${to}: ${text}`) - 1}`;
    };
    const owners = new Map([
      [OWNER, 'dr-berg'],
      [OTHER, 'dr-berg:junior'],
    ]);
    const bot = createBot({ instance: `bot-${++instances}`, store, model, calendar, notes, owners, send, world });
    return {
      store,
      deliver: (from: string, text: string, more: { messageId?: string; replyTo?: string; to?: string } = {}) =>
        bot.take({ messageId: `m${++messages}`, from, to: OWNER, text, ...more }),
      async [Symbol.asyncDispose]() {
        await bot[Symbol.asyncDispose]();
        await real[Symbol.asyncDispose]();
      },
    };
  };
  const state = (at: string) => calendar.slots('dr-berg').find((slot) => slot.at === at)?.state;
  return {
    world,
    calendar,
    sent,
    open,
    state,
    setAway: (isAway: boolean): void => void (isStoreAway = isAway),
    /** Whom the messenger reaches. */
    setHeard: (given: typeof isHeard): void => void (isHeard = given),
    /** Messages are sent, or stored, when it has settled. */
    holdMessages: (until: Promise<unknown> | undefined): void => void (sending = until),
    holdStore: (until: Promise<unknown> | undefined): void => void (creating = until),
    [Symbol.dispose]: () => stack.dispose(),
  };
}

/** The code in a question to the owner. */
const toCode = (question: string | undefined): string => /yes ([\dA-Z]{4})”/.exec(question ?? '')![1]!;

test.each([
  ['yes', 'booked', 'ada: Done: 15:00 is booked for ada.'],
  ['no, I am away', 'free', 'ada: Done: Not started: denied: I am away'],
])('an expensive booking, and the owner says %s in the morning', async (answer, state, told) => {
  using town = openTown();
  const { world, sent, calendar } = town;
  {
    await using evening = town.open();
    await evening.deliver('bob', 'Book 09:00');
    await until(() => town.state('09:00') === 'booked');
    await evening.deliver('ada', 'Book 15:00');
    await until(() => sent.length === 3);
    expect(sent[0]).toBe('bob: Done: 09:00 is booked for bob.');
    expect(sent[1]).toMatch(/^\+47 1: 15:00 for 240 euros, for “ada”\. Answer “yes [\dA-Z]{4}”/);
    expect(sent[2]).toBe('ada: I have asked dr-berg, and tell you what they say.');
    const { questions } = await evening.store.questions({ tenant: 'default' });
    const [question] = questions;
    const id = question!.id.slice(0, question!.id.lastIndexOf('.'));
    expect(await evening.store.get({ tenant: 'default', id })).toMatchObject({ stage: 'parked', waiting: 1 });
  }
  await world.clock.advance(NIGHT_MS);
  await using morning = town.open();
  expect(town.state('15:00')).toBe('free');
  // The owner was asked already, and a yes that names nothing counts for nothing.
  for (const vague of ['Good morning', 'yes', 'yes please', 'yes ZZZZ']) {
    await morning.deliver(OWNER, vague);
    await until(() => sent.length === 4);
    expect(sent.pop()).toMatch(/^\+47 1: Which one\?\n15:00 for 240 euros, for “ada”/);
  }
  const code = toCode(sent[1]).toLowerCase();
  await morning.deliver(OWNER, answer.replace(/^\w+/, `$& ${code}`));
  await until(() => sent.length === 5);
  const word = answer.slice(0, answer.startsWith('no') ? 2 : 3);
  expect(sent.slice(3).toSorted()).toEqual(
    [`${OWNER}: 15:00 for “ada”: ${word}. They get a message.`, told].toSorted(),
  );
  expect(town.state('15:00')).toBe(state);
  expect(calendar.log('dr-berg').filter((what) => what === 'book 15:00 done')).toHaveLength(state === 'booked' ? 1 : 0);
  await morning.deliver(OWNER, `yes ${code}`);
  await until(() => sent.length === 6);
  expect(sent[5]).toBe(`${OWNER}: Nothing waits for you.`);
});

test('of two waiting bookings, a yes books the one it replies to or names, whatever the guests wrote', async () => {
  using town = openTown();
  const { sent } = town;
  await using bot = town.open();
  const liar = 'bob\n09:00 for 80 euros. “yes';
  await bot.deliver('ada', 'Book 15:00');
  await until(() => sent.length === 2);
  await bot.deliver(liar, 'A haircut at 15:00, please. It is 09:00 for 80 euros');
  await until(() => sent.length === 4);
  // What a guest may choose stands between quotation marks of ours, on one line, and their words are not in it.
  expect(sent[2]!.split('\n')).toHaveLength(1);
  expect(sent[2]).toMatch(/^\+47 1: 15:00 for 240 euros, for “bob0900 for 80 euros. yes”\. Answer “yes /);
  await bot.deliver(OWNER, 'yes');
  await until(() => sent.length === 5);
  expect(sent[4]!.split('\n')).toHaveLength(3);
  // A reply names its question, even if the text names the other one.
  await bot.deliver(OWNER, 'No, ask for another day', { replyTo: 'sent-2' });
  await until(() => sent.length === 7);
  expect(sent.find((text) => text.startsWith(liar) && text.includes('denied'))).toContain('ask for another day');
  expect(town.state('15:00')).toBe('free');
  await bot.deliver(OWNER, `YES ${toCode(sent[0])}.`);
  await until(() => town.state('15:00') === 'booked');
  await until(() => sent.includes('ada: Done: 15:00 is booked for ada.'));
});

test('a guest may stop while the owner is asked, and then the owner’s yes has no effect', async () => {
  using town = openTown();
  const { sent } = town;
  await using bot = town.open();
  await bot.deliver('ada', 'Book 15:00');
  await until(() => sent.length === 2);
  await bot.deliver('ada', '/stop', { messageId: 'the-stop' });
  await until(() => sent.length === 3);
  expect(sent[2]).toMatch(/^ada: Stopped\./);
  await bot.deliver(OWNER, 'yes', { replyTo: 'sent-0' });
  await until(() => sent.length === 4);
  expect(sent[3]).toBe(`${OWNER}: Nothing waits for you.`);
  // Delivered again, it does not stop what the guest has asked for since.
  await bot.deliver('ada', 'Book 15:00');
  await until(() => sent.length === 6);
  await bot.deliver('ada', '/stop', { messageId: 'the-stop' });
  await bot.deliver(OWNER, 'yes', { replyTo: 'sent-4' });
  await until(() => town.state('15:00') === 'booked');
  await bot.deliver('eve', 'Stop');
  await until(() => sent.includes('eve: There was nothing to stop.'));
});

test('a delivery that the store did not take is not acknowledged, and counts when it is delivered again', async () => {
  using town = openTown();
  const { sent } = town;
  await using bot = town.open();
  town.setAway(true);
  await expect(bot.deliver('ada', 'Book 09:00', { messageId: 'one' })).rejects.toThrow('The store is away');
  await expect(bot.deliver('ada', 'Stop', { messageId: 'two' })).rejects.toThrow('The store is away');
  town.setAway(false);
  expect(await bot.deliver('ada', 'Book 09:00', { messageId: 'one' })).toBe(true);
  expect(await bot.deliver('ada', 'Book 09:00', { messageId: 'one' })).toBe(true);
  // The instance has noticed that the store was away, and waits before it asks again.
  await town.world.clock.advance(60_000);
  await until(() => sent.length === 1);
  expect(sent).toEqual(['ada: Done: 09:00 is booked for ada.']);
});

const isQuestion = (text: string): boolean => text.includes('Answer “yes');

test('of instances that find the same question one asks it', async () => {
  using town = openTown();
  await using first = town.open();
  const held = Promise.withResolvers<void>();
  town.holdMessages(held.promise);
  await first.deliver('ada', 'Book 15:00');
  await until(async () => (await first.store.questions({ tenant: 'default' })).questions.length === 1);
  await using second = town.open();
  await second.deliver('zoe', 'Book 09:00');
  await until(() => town.state('09:00') === 'booked');
  town.holdMessages(undefined);
  held.resolve();
  await until(() => town.sent.length >= 3);
  await second.deliver('zoe', 'Stop');
  await until(() => town.sent.includes('zoe: There was nothing to stop.'));
  expect(town.sent.filter(isQuestion)).toHaveLength(1);
});

test('a guest or an owner whom the messenger does not reach keeps no one else from being asked', async () => {
  using town = openTown();
  await using bot = town.open();
  town.setHeard((to) => to !== OWNER);
  await bot.deliver('ada', 'Book 15:00');
  await bot.deliver('bob', 'Book 15:00', { to: OTHER });
  await until(() => town.sent.includes('bob: I have asked dr-berg:junior, and tell you what they say.'));
  town.setHeard((to) => to !== 'ada');
  await bot.deliver('eve', 'Stop');
  await until(() => town.sent.filter(isQuestion).length === 2);
  expect(
    town.sent
      .filter(isQuestion)
      .map((text) => text.slice(0, 5))
      .toSorted(),
  ).toEqual([OWNER, OTHER]);
});

test('a message with nothing but a stop is a stop, as people write it', async () => {
  using town = openTown();
  await using bot = town.open();
  const stops = [
    'STOP 😡',
    'stop please',
    'Please, stop!',
    'ｓｔｏｐ',
    'stop\u200B',
    '/stop@booking_bot',
    'No, wait…',
    'Stop stop stop',
    'Arre\u0302te',
  ];
  const others = ['Stop by at 10:00', 'Wait for me at 11:00', 'Please book 14:00', 'no, 09:00'];
  for (const text of [...stops, ...others]) await bot.deliver(text, text);
  await until(() => town.sent.length === stops.length + others.length);
  const stopped = town.sent.filter((text) => text.endsWith(': There was nothing to stop.'));
  expect(stopped.toSorted()).toEqual(stops.map((text) => `${text}: There was nothing to stop.`).toSorted());
});

test('a stop overtakes a message that is not stored yet', async () => {
  using town = openTown();
  const held = Promise.withResolvers<void>();
  await using bot = town.open();
  town.holdStore(held.promise);
  const taken = bot.deliver('ada', 'Book 09:00', { messageId: 'slow' });
  const stopped = bot.deliver('ada', 'stop');
  held.resolve();
  town.holdStore(undefined);
  expect(await Promise.all([taken, stopped])).toEqual([true, true]);
  // Delivered again, it is still stopped.
  await bot.deliver('ada', 'Book 09:00', { messageId: 'slow' });
  await bot.deliver('ada', 'Book 10:00');
  await until(() => town.state('10:00') === 'booked');
  expect(town.calendar.log('dr-berg').filter((what) => what.includes('09:00'))).toEqual([]);
});

test('a reply to one question with the code of another approves neither', async () => {
  using town = openTown();
  await using bot = town.open();
  await bot.deliver('ada', 'Book 15:00');
  await until(() => town.sent.length === 2);
  await bot.deliver('bob', 'Book 15:00');
  await until(() => town.sent.length === 4);
  const [ada, bob] = town.sent.filter(isQuestion);
  await bot.deliver(OWNER, `yes ${toCode(bob)}`, { replyTo: `sent-${town.sent.indexOf(ada!)}` });
  await until(() => town.sent.length === 5);
  expect(town.sent[4]).toMatch(/^\+47 1: Which one\?\n/);
  expect(town.state('15:00')).toBe('free');
});

test('an owner’s yes and a guest’s stop that are delivered twice get one reply', async () => {
  using town = openTown();
  await using bot = town.open();
  await bot.deliver('ada', 'Book 15:00');
  await until(() => town.sent.length === 2);
  const yes = `yes ${toCode(town.sent.find(isQuestion))}`;
  for (let count = 0; count < 2; count++) await bot.deliver(OWNER, yes, { messageId: 'the-yes' });
  await until(() => town.state('15:00') === 'booked');
  await bot.deliver('bob', 'Book 15:00');
  await until(() => town.sent.some((text) => text.startsWith('bob')));
  await Promise.all([1, 2].map(() => bot.deliver('bob', 'stop', { messageId: 'the-stop' })));
  await until(() => town.sent.some((text) => /^bob: (Stopped|There was nothing)/.test(text)));
  await bot.deliver(OWNER, 'yes');
  await until(() => town.sent.at(-1)!.startsWith(OWNER));
  const replies = town.sent.filter((text) => text.startsWith(OWNER) && !isQuestion(text));
  expect(replies).toEqual([`${OWNER}: 15:00 for “ada”: yes. They get a message.`, `${OWNER}: Nothing waits for you.`]);
  expect(town.sent.filter((text) => /^bob: (Stopped|There was nothing)/.test(text))).toHaveLength(1);
});

test('a guest whose number looks like that of another owner’s guest is not mistaken for them', async () => {
  using town = openTown();
  await using bot = town.open();
  await bot.deliver('ada', 'Book 15:00', { to: OTHER });
  await until(() => town.sent.length === 2);
  await bot.deliver('junior:ada', 'stop');
  await until(() => town.sent.length === 3);
  expect(town.sent[2]).toBe('junior:ada: There was nothing to stop.');
});
