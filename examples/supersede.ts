// A chat assistant with slow calendar tools. "Make it 4 pm instead" arrives while it works on 3 pm.
//   node examples/supersede.ts [FACTOR]      1 is real time; the default, 0.1, takes about two seconds

import { createAgent, createConversations, defineTool, formatStopReport, type Message, toText } from '@whoa/core';
import { callTools, reply } from '@whoa/core/model';
import { z } from 'zod';

const factor = Number(process.argv[2] ?? 0.1);
const seconds = (count: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, count * 1_000 * factor));
const started = performance.now();
if (factor !== 1) console.log(`(played ${1 / factor} times as fast; only the stop report tells the real time)`);
const say = (line: string): void =>
  console.log(`${((performance.now() - started) / 1_000 / factor).toFixed(1).padStart(5)} s  ${line}`);

const lookup = defineTool({
  name: 'calendar_lookup',
  description: 'Reads the calendar. Takes about 6 seconds.',
  inputSchema: z.object({ day: z.string() }),
  effects: 'read',
  execute: async ({ day }) => {
    await seconds(6);
    return { content: `${day}: 3 meetings`, details: { day, meetings: ['stand-up', 'lunch', 'review'] } };
  },
});

const availability = defineTool({
  name: 'check_availability',
  description: 'Asks whether somebody is free. Takes 3 to 5 seconds.',
  inputSchema: z.object({ who: z.string(), at: z.string(), seconds: z.number() }),
  effects: 'read',
  execute: async ({ who, at, seconds: takes }) => {
    await seconds(takes);
    return `${who} is free at ${at}`;
  },
});

const book = defineTool({
  name: 'calendar_book',
  description: 'Books a meeting. Must not be interrupted.',
  inputSchema: z.object({ at: z.string() }),
  whenCancelled: 'finish',
  timeoutMs: 10_000,
  effects: 'write',
  execute: async ({ at }) => {
    await seconds(1);
    return { content: `Booked for ${at}`, details: { eventId: `event at ${at}` } };
  },
});

/**
 * A planner with a fixed plan: look and ask in wave 1, book in wave 2, then answer. A model would be another planner.
 */
let calls = 0;
const planner = {
  next(history: readonly Message[], { turn }: { turn: number }) {
    const asked = history.filter((message) => message.role === 'user').map(({ content }) => toText(content));
    const at = /\d+ pm/.exec(asked.at(-1) ?? '')?.[0] ?? 'noon';
    if (turn > 1) return reply(`Done: the meeting is at ${at}.`);
    const id = (name: string): string => `${name} ${at} #${++calls}`;
    const needed = [
      { id: id('lookup'), tool: 'calendar_lookup', input: { day: 'Tuesday' } },
      { id: id('anna'), tool: 'check_availability', input: { who: 'anna', at, seconds: 3 } },
      { id: id('bob'), tool: 'check_availability', input: { who: 'bob', at, seconds: 5 } },
    ];
    return callTools([
      ...needed,
      { id: id('book'), tool: 'calendar_book', input: { at }, dependsOn: needed.map((call) => call.id) },
    ]);
  },
};

const agent = createAgent({
  name: 'assistant',
  planner,
  tools: [lookup, availability, book],
  hooks: {
    'call-start': ({ callId }) => say(`  … ${callId}`),
    'call-end': ({ result }) => say(`  ${result.state === 'finished' ? '✓' : '–'} ${result.callId}: ${result.state}`),
    'call-waiting': ({ callId }) => say(`  ! the cancel waits for ${callId}: it must not be interrupted`),
    'level-changed': ({ level, reason }) => say(`  ■ ${level}: ${reason.kind}`),
  },
});
const conversations = createConversations({ agent, onReply: ({ text }) => say(`assistant: ${text}`) });

say('user: Book a meeting with anna and bob on Tuesday at 3 pm');
const first = conversations.processMessage('chat', 'Book a meeting with anna and bob on Tuesday at 3 pm');
await seconds(4);
say('user: make it 4 pm instead');
const second = conversations.processMessage('chat', 'make it 4 pm instead');

const superseded = await first;
const { outcome } = superseded;
if (outcome?.status === 'cancelled') {
  const drained = new Set(outcome.stop.calls.filter(({ state }) => state === 'finished').map(({ callId }) => callId));
  const list = (ids: readonly string[]): string => ids.join(', ') || 'nothing';
  const finished = outcome.calls.filter(({ state }) => state === 'finished').map(({ callId }) => callId);
  const skipped = outcome.calls.filter(({ state }) => state === 'not-started').map(({ callId }) => callId);
  say(`the first message was ${superseded.status}`);
  say(`  kept: ${list(finished)}`);
  say(`  of these waited for after the cancel: ${list([...drained])}`);
  say(`  skipped: ${list(skipped)}`);
  console.log(formatStopReport(outcome.stop));
}
await second;
await conversations[Symbol.asyncDispose]();
