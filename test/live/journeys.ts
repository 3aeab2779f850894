// The cut-off journeys: a run is stopped at some moment, and the next one continues from what it left. Each is run
// against the loopback provider, a vendor, or a recording of either.

import type { ScriptedResponse } from '@whoa/ai-sdk/testing';
import { createAgent, defineTool, type Message, type Outcome, type RunEvent, toText } from '@whoa/core';
import type { Model } from '@whoa/core/model';
import { z } from 'zod';

export interface Journey {
  readonly name: string;
  /** The loopback provider's responses. */
  readonly script: readonly ScriptedResponse[];
  /** Settings of the adapter, as the AI SDK names them. */
  readonly thinks?: true;
  /** Returns the problems. */
  readonly run: (model: Model) => Promise<string[]>;
}

const COUNT = 'Count from one to two hundred in English words, separated by commas. Write nothing else.';
const ONWARD = 'You were stopped. In five words at most: what did you do last?';

/** Long enough that a cut finds it under way. */
const numbers: ScriptedResponse = {
  parts: [{ text: [...Array.from({ length: 20 }, (_, index) => `number ${index + 1}, `), { stall: true }] }],
};
const end: ScriptedResponse = { parts: [{ text: 'I counted to twenty.' }] };

export const JOURNEYS: readonly Journey[] = [
  {
    name: 'cut-in-words',
    script: [numbers, end],
    async run(model) {
      let shown = 0;
      const { outcome, next } = await cutAndGoOn(model, COUNT, (event) => {
        if (event.type === 'text') shown += event.text.length;
        return shown >= 40;
      });
      return [
        ...cancelled(outcome),
        ...(outcome.text.length < 40 ? [`only ${outcome.text.length} characters are kept, 40 were shown`] : []),
        ...wentOn(next),
      ];
    },
  },
  {
    name: 'cut-in-thinking',
    thinks: true,
    script: [{ parts: [{ thinking: ['Let me think ', 'about this ', { stall: true }] }, { text: 'never said' }] }, end],
    async run(model) {
      const question = 'Which primes below 60 are one more than a multiple of four? Think first.';
      const { outcome, next } = await cutAndGoOn(model, question, ({ type }) => type === 'thinking' || type === 'text');
      return [...cancelled(outcome), ...wentOn(next)];
    },
  },
  {
    name: 'cut-in-a-call',
    script: [{ parts: [{ text: 'I look. ' }, { call: 'look', id: 'call_look', input: { where: 'roof' } }] }, end],
    async run(model) {
      const question = 'Use the tool `look` to look at the roof.';
      const { outcome, next } = await cutAndGoOn(model, question, ({ type }) => type === 'call-start');
      const states = outcome.calls.map(({ state }) => state).join();
      return [
        ...cancelled(outcome),
        ...(states === 'interrupted' ? [] : [`the call ended '${states}', it was interrupted`]),
        ...wentOn(next),
      ];
    },
  },
  {
    name: 'cut-between-calls',
    script: [
      {
        parts: [
          { call: 'note', id: 'call_note', input: { text: 'one' } },
          { call: 'look', id: 'call_look', input: { where: 'roof' } },
        ],
      },
      end,
    ],
    async run(model) {
      const question = 'Call the tools `note` (text: one) and `look` (where: roof) together, in one reply.';
      let isNoted = false;
      let isLooking = false;
      const { outcome, next } = await cutAndGoOn(model, question, (event) => {
        isNoted ||= event.type === 'call-end' && event.result.tool === 'note';
        isLooking ||= event.type === 'call-start' && event.tool === 'look';
        return isNoted && isLooking;
      });
      const noted = outcome.calls.find(({ tool }) => tool === 'note');
      return [
        ...cancelled(outcome),
        ...(noted?.state === 'finished' ? [] : [`the finished call is '${noted?.state}'`]),
        ...wentOn(next),
      ];
    },
  },
];

/** Runs until the moment, cancels, and runs again with the resulting history. */
async function cutAndGoOn(
  model: Model,
  question: string,
  isMoment: (event: RunEvent) => boolean,
): Promise<{ outcome: Outcome; next: Outcome }> {
  const budgets = { maxDurationMs: 60_000 };
  const agent = createAgent({ name: 'live', model, tools: [look, note], instructions: 'Be brief.', budgets });
  let isCut = false;
  const run = agent.run(question, {
    hooks: {
      any(event) {
        if (isCut || !isMoment(event)) return;
        isCut = true;
        // Text is cut immediately, so that a replay cuts at the same word; a call must have started first.
        if (event.type === 'text') run.cancel({ kind: 'user' }, { mode: 'now' });
        else setImmediate(() => run.cancel({ kind: 'user' }, { mode: 'now' }));
      },
    },
  });
  const outcome = await run.outcome;
  const next = await agent.run(ONWARD, { history: outcome.messages }).outcome;
  return { outcome, next };
}

const look = defineTool({
  name: 'look',
  description: 'Looks somewhere',
  inputSchema: z.object({ where: z.string() }),
  effects: 'read',
  execute: (_, { signal }) =>
    new Promise<string>((_resolve, reject) =>
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }),
    ),
});

const note = defineTool({
  name: 'note',
  description: 'Writes a note down',
  inputSchema: z.object({ text: z.string() }),
  effects: 'read',
  execute: ({ text }) => `Noted: ${text}`,
});

function cancelled({ status }: Outcome): string[] {
  return status === 'cancelled' ? [] : [`the run that was cut ended '${status}'`];
}

function wentOn(next: Outcome): string[] {
  if (next.status === 'failed') return [`the next turn failed: ${String((next.error as Error).message)}`];
  const said = next.text.trim() !== '' || next.messages.some(isCalled);
  return next.status === 'success' && said ? [] : [`the next turn ended '${next.status}' and said '${next.text}'`];
}

function isCalled(message: Message): boolean {
  return message.role === 'tool' && toText(message.content) !== '';
}
