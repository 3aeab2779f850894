// One turn of `streamText` and of `generateText` with each major of `ai` that `createStoppableTurn` is tested with, typed as a user's
// code is: what does not compile there does not compile here.
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { type CallLedger, createStoppableTurn, type SettledTurn } from '@whoa/ai-sdk';
import type { WireFormat } from '@whoa/ai-sdk/testing';
import type { CancellationToken } from '@whoa/core';
import * as v7 from 'ai';
import { createAnthropic as createAnthropicV2 } from 'ai-sdk-anthropic-v2';
import { createAnthropic as createAnthropicV3 } from 'ai-sdk-anthropic-v3';
import { createOpenAI as createOpenAiV2 } from 'ai-sdk-openai-v2';
import { createOpenAI as createOpenAiV3 } from 'ai-sdk-openai-v3';
import * as v5 from 'ai-v5';
import * as v6 from 'ai-v6';
import { z } from 'zod';

type Execute = (input: { readonly at?: number | undefined }, options: { abortSignal?: AbortSignal }) => unknown;

export interface TurnInput {
  readonly url: string;
  readonly format: WireFormat;
  /** Messages of the UI kind, as a chat stores them. */
  readonly history: readonly unknown[];
  readonly calls: CallLedger;
  readonly slow: Execute;
  readonly fast: Execute;
  readonly mustFinish?: { readonly slow: { readonly timeoutMs: number } };
  /** Told of every part that the reader sees. */
  readonly onPart?: (type: string) => void;
  readonly token: CancellationToken;
}

interface TurnEnd {
  readonly settled: SettledTurn;
  /** The history after it, as the UI stream hands it over. */
  readonly history: readonly unknown[];
  /** The types of the parts that a reader saw. */
  readonly seen: readonly string[];
}

interface AiVersion {
  readonly major: 5 | 6 | 7;
  stream(input: TurnInput): Promise<TurnEnd>;
  generate(input: TurnInput): Promise<SettledTurn>;
}

const inputSchema = z.object({ at: z.number().optional() });

function modelOf<Model>(
  { format, url }: TurnInput,
  makers: {
    openAi: (settings: { baseURL: string; apiKey: string }) => {
      chat: (id: 'gpt-4o') => Model;
      responses: (id: 'gpt-5') => Model;
    };
    anthropic: (settings: { baseURL: string; apiKey: string }) => (id: 'claude-sonnet-4-5') => Model;
  },
): Model {
  const settings = { baseURL: url, apiKey: 'none' };
  if (format === 'anthropic') return makers.anthropic(settings)('claude-sonnet-4-5');
  return format === 'chat' ? makers.openAi(settings).chat('gpt-4o') : makers.openAi(settings).responses('gpt-5');
}

const seven: AiVersion = {
  major: 7,
  async stream(input) {
    const originalMessages = input.history as v7.UIMessage[];
    const turn = await turnOf7(input);
    const result = v7.streamText({ model: model7(input), ...turn, maxRetries: 0, onError: () => {} });
    let history: v7.UIMessage[] = [];
    const onEnd = ({ messages }: { messages: v7.UIMessage[] }) => void (history = messages);
    const stream = v7.toUIMessageStream({ stream: result.stream, originalMessages, onEnd });
    const seen = await typesIn(stream, input);
    return { settled: await turn.settled, history, seen };
  },
  async generate(input) {
    const turn = await turnOf7(input);
    await v7.generateText({ model: model7(input), ...turn, maxRetries: 0 }).catch(() => {});
    return turn.settled;
  },
};

function model7(input: TurnInput) {
  return modelOf(input, { openAi: createOpenAI, anthropic: createAnthropic });
}

async function turnOf7({ history, slow, fast, ...rest }: TurnInput) {
  const tools = {
    slow: v7.tool({ inputSchema, execute: slow }),
    fast: v7.tool({ inputSchema, execute: fast }),
  };
  return createStoppableTurn({ ...rest, history: await v7.convertToModelMessages(history as v7.UIMessage[]), tools });
}

const six: AiVersion = {
  major: 6,
  async stream(input) {
    const originalMessages = input.history as v6.UIMessage[];
    const turn = await turnOf6(input);
    const result = v6.streamText({ model: model6(input), ...turn, maxRetries: 0, onError: () => {} });
    let history: v6.UIMessage[] = [];
    const onFinish = ({ messages }: { messages: v6.UIMessage[] }) => void (history = messages);
    const seen = await typesIn(result.toUIMessageStream({ originalMessages, onFinish }), input);
    return { settled: await turn.settled, history, seen };
  },
  async generate(input) {
    const turn = await turnOf6(input);
    await v6.generateText({ model: model6(input), ...turn, maxRetries: 0 }).catch(() => {});
    return turn.settled;
  },
};

function model6(input: TurnInput) {
  return modelOf(input, { openAi: createOpenAiV3, anthropic: createAnthropicV3 });
}

async function turnOf6({ history, slow, fast, ...rest }: TurnInput) {
  const tools = {
    slow: v6.tool({ inputSchema, execute: slow }),
    fast: v6.tool({ inputSchema, execute: fast }),
  };
  return createStoppableTurn({ ...rest, history: await v6.convertToModelMessages(history as v6.UIMessage[]), tools });
}

const five: AiVersion = {
  major: 5,
  async stream(input) {
    const originalMessages = input.history as v5.UIMessage[];
    const turn = turnOf5(input);
    const result = v5.streamText({ model: model5(input), ...turn, maxRetries: 0, onError: () => {} });
    let history: v5.UIMessage[] = [];
    const onFinish = ({ messages }: { messages: v5.UIMessage[] }) => void (history = messages);
    const seen = await typesIn(result.toUIMessageStream({ originalMessages, onFinish }), input);
    return { settled: await turn.settled, history, seen };
  },
  async generate(input) {
    const turn = turnOf5(input);
    await v5.generateText({ model: model5(input), ...turn, maxRetries: 0 }).catch(() => {});
    return turn.settled;
  },
};

function model5(input: TurnInput) {
  return modelOf(input, { openAi: createOpenAiV2, anthropic: createAnthropicV2 });
}

function turnOf5({ history, slow, fast, ...rest }: TurnInput) {
  const tools = {
    slow: v5.tool({ inputSchema, execute: slow }),
    fast: v5.tool({ inputSchema, execute: fast }),
  };
  return createStoppableTurn({ ...rest, history: v5.convertToModelMessages(history as v5.UIMessage[]), tools });
}

async function typesIn(
  stream: AsyncIterable<{ readonly type: string }>,
  { onPart }: Pick<TurnInput, 'onPart'>,
): Promise<string[]> {
  const seen: string[] = [];
  for await (const { type } of stream) {
    seen.push(type);
    onPart?.(type);
  }
  return seen;
}

export const aiVersions: readonly AiVersion[] = [seven, six, five];
