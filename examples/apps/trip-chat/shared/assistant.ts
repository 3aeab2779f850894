// The model and its tools. A tool writes to the page while it works, so each reply has its own.
import { setTimeout as wait } from 'node:timers/promises';
import { openai } from '@ai-sdk/openai';
import { isStepCount, smoothStream, tool, type UIMessageStreamWriter } from 'ai';
import { z } from 'zod';
import { note } from './db.ts';
import type { TripMessage } from './messages.ts';

const MODEL = process.env['MODEL'] ?? 'gpt-5-mini';
const LOOKUP_MS = Number(process.env['LOOKUP_MS'] ?? 3_000);

export function createTools(owner: string, writer?: UIMessageStreamWriter<TripMessage>) {
  return {
    weather: tool({
      description: 'Looks up the weather of a city.',
      inputSchema: z.object({ city: z.string() }),
      async execute({ city }, { abortSignal: signal, toolCallId: id }) {
        writer?.write({ type: 'data-weather', id, data: { city } });
        note(owner, 'lookup started');
        await wait(LOOKUP_MS, undefined, { signal });
        note(owner, 'lookup ended');
        writer?.write({ type: 'data-weather', id, data: { city, degrees: 21 } });
        return `21 degrees in ${city}`;
      },
    }),
    book: tool({
      description: 'Books a hotel in a city.',
      inputSchema: z.object({ city: z.string() }),
      async execute({ city }) {
        note(owner, `booking ${city}`);
        await wait(LOOKUP_MS);
        note(owner, `booked ${city}`);
        return `A room in ${city} is booked`;
      },
    }),
  };
}

interface About {
  readonly writer: UIMessageStreamWriter<TripMessage>;
  /** What the page sent with the message. */
  readonly isBrief: boolean;
}

/** The options of `streamText` for a traveller. */
export function assistantFor(owner: string, { writer, isBrief }: About) {
  return {
    model: openai.chat(MODEL),
    instructions: 'You plan trips. Use your tools; do not ask before you call them.',
    maxOutputTokens: isBrief ? 500 : 5_000,
    tools: createTools(owner, writer),
    stopWhen: isStepCount(3),
    // The last step must answer.
    prepareStep: ({ stepNumber }: { stepNumber: number }) => (stepNumber === 2 ? { toolChoice: 'none' as const } : {}),
    experimental_transform: smoothStream({ delayInMs: null }),
    onStepEnd: ({ usage }: { usage: { inputTokens: number | undefined } }) =>
      note(owner, `billed ${usage.inputTokens}`),
  };
}

/** What the page shows of a reply, besides its parts. */
export function describeReply({ part }: { part: { type: string; totalUsage?: { totalTokens?: number | undefined } } }) {
  if (part.type === 'start') return { model: MODEL };
  return part.type === 'finish' ? { tokens: part.totalUsage?.totalTokens } : undefined;
}

/** What the model gets of the data that the page adds to a message. */
export function describeData({ type, data }: { type: string; data: unknown }) {
  if (type !== 'data-place') return undefined;
  return { type: 'text' as const, text: `(I am in ${(data as { city: string }).city}.)` };
}
