// One turn of `streamText` and of `generateText` with each major of `ai` that `createStoppableTurn` supports, typed as
// a user's code is: code that does not compile for users does not compile here.
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { type CallRecords, createStoppableTurn, type SettledTurn } from '@whoa/ai-sdk';
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
  readonly calls: CallRecords;
  readonly slow: Execute;
  readonly fast: Execute;
  readonly mustFinish?: { readonly slow: { readonly timeoutMs: number } };
  /** Whether `slow` needs an approval, which 5 does not have. */
  readonly needsApproval?: boolean;
  /** Whether the model may search the web with the vendor's own tool. */
  readonly canSearch?: boolean;
  /** Called for every error of the loop. */
  readonly onError?: (error: unknown) => void;
  /** Called for every part that the reader sees. */
  readonly onPart?: (type: string) => void;
  readonly token: CancellationToken;
}

/** The settings of a turn that are the same with each major. */
function toSettings({ calls, mustFinish, token }: Pick<TurnInput, 'calls' | 'mustFinish' | 'token'>) {
  return { calls, token, ...(mustFinish && { mustFinish }) };
}

interface TurnEnd {
  readonly settled: SettledTurn;
  /** The history after it, from the UI stream. */
  readonly history: readonly unknown[];
  /** The types of the parts that a reader saw. */
  readonly seen: readonly string[];
}

interface BotEnd {
  readonly settled: SettledTurn;
  /** The loop's own messages of it, which there are only if it was not stopped. */
  readonly own: readonly unknown[] | undefined;
}

interface AiVersion {
  readonly major: 5 | 6 | 7;
  stream(input: TurnInput): Promise<TurnEnd>;
  /** The same for a bot that stores model messages: `history` is a list of those. */
  streamBot(input: TurnInput): Promise<BotEnd>;
  generate(input: TurnInput): Promise<SettledTurn>;
}

const inputSchema = z.object({ at: z.number().optional() });

function openModel<Model>(
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
    const result = v7.streamText({
      model: model7(input),
      ...turn,
      toolApproval: approval7(input),
      maxRetries: 0,
      onError: ({ error }) => input.onError?.(error),
    });
    let history: v7.UIMessage[] = [];
    const onEnd = ({ messages }: { messages: v7.UIMessage[] }) => void (history = messages);
    const stream = v7.toUIMessageStream({ stream: result.stream, originalMessages, onEnd });
    const seen = await readTypes(stream, input);
    return { settled: await turn.settled, history, seen };
  },
  async streamBot(input) {
    const turn = botOf7(input);
    const result = v7.streamText({
      model: model7(input),
      ...turn,
      toolApproval: approval7(input),
      maxRetries: 0,
      onError: ({ error }) => input.onError?.(error),
    });
    for await (const { type } of result.stream) input.onPart?.(type);
    const own = Promise.resolve(result.responseMessages).catch(() => undefined);
    return { settled: await turn.settled, own: await own };
  },
  async generate(input) {
    const turn = await turnOf7(input);
    await v7
      .generateText({ model: model7(input), ...turn, toolApproval: approval7(input), maxRetries: 0 })
      .catch(() => {});
    return turn.settled;
  },
};

function model7(input: TurnInput) {
  return openModel(input, { openAi: createOpenAI, anthropic: createAnthropic });
}

async function turnOf7(input: TurnInput) {
  const history = await v7.convertToModelMessages(input.history as v7.UIMessage[]);
  return botOf7({ ...input, history });
}

function approval7({ needsApproval }: TurnInput) {
  return needsApproval ? { slow: 'user-approval' as const } : {};
}

function botOf7({ history, slow, fast, canSearch, format, ...rest }: TurnInput) {
  const tools = {
    slow: v7.tool({ inputSchema, execute: slow }),
    fast: v7.tool({ inputSchema, execute: fast }),
    ...(canSearch ? search7(format) : {}),
  };
  return createStoppableTurn({ ...toSettings(rest), history: history as v7.ModelMessage[], tools });
}

function search7(format: WireFormat): v7.ToolSet {
  const settings = { apiKey: 'none' };
  if (format === 'anthropic') return { web_search: createAnthropic(settings).tools.webSearch_20250305({}) };
  return { web_search: createOpenAI(settings).tools.webSearch({}) };
}

const six: AiVersion = {
  major: 6,
  async stream(input) {
    const originalMessages = input.history as v6.UIMessage[];
    const turn = await turnOf6(input);
    const result = v6.streamText({
      model: model6(input),
      ...turn,
      maxRetries: 0,
      onError: ({ error }) => input.onError?.(error),
    });
    let history: v6.UIMessage[] = [];
    const onFinish = ({ messages }: { messages: v6.UIMessage[] }) => void (history = messages);
    const seen = await readTypes(result.toUIMessageStream({ originalMessages, onFinish }), input);
    return { settled: await turn.settled, history, seen };
  },
  async streamBot(input) {
    const turn = botOf6(input);
    const result = v6.streamText({
      model: model6(input),
      ...turn,
      maxRetries: 0,
      onError: ({ error }) => input.onError?.(error),
    });
    for await (const { type } of result.fullStream) input.onPart?.(type);
    const own = Promise.resolve(result.response.then(({ messages }) => messages)).catch(() => undefined);
    return { settled: await turn.settled, own: await own };
  },
  async generate(input) {
    const turn = await turnOf6(input);
    await v6.generateText({ model: model6(input), ...turn, maxRetries: 0 }).catch(() => {});
    return turn.settled;
  },
};

function model6(input: TurnInput) {
  return openModel(input, { openAi: createOpenAiV3, anthropic: createAnthropicV3 });
}

async function turnOf6(input: TurnInput) {
  const history = await v6.convertToModelMessages(input.history as v6.UIMessage[]);
  return botOf6({ ...input, history });
}

function botOf6({ history, slow, fast, needsApproval, canSearch, format, ...rest }: TurnInput) {
  const tools = {
    slow: v6.tool({ inputSchema, execute: slow, ...(needsApproval && { needsApproval }) }),
    fast: v6.tool({ inputSchema, execute: fast }),
    ...(canSearch ? search6(format) : {}),
  };
  return createStoppableTurn({ ...toSettings(rest), history: history as v6.ModelMessage[], tools });
}

function search6(format: WireFormat): v6.ToolSet {
  const settings = { apiKey: 'none' };
  // Under `exactOptionalPropertyTypes` its type does not fit its own package's.
  if (format === 'anthropic') return { web_search: createAnthropicV3(settings).tools.webSearch_20250305({}) as never };
  return { web_search: createOpenAiV3(settings).tools.webSearch({}) };
}

const five: AiVersion = {
  major: 5,
  async stream(input) {
    const originalMessages = input.history as v5.UIMessage[];
    const turn = turnOf5(input);
    const result = v5.streamText({
      model: model5(input),
      ...turn,
      maxRetries: 0,
      onError: ({ error }) => input.onError?.(error),
    });
    let history: v5.UIMessage[] = [];
    const onFinish = ({ messages }: { messages: v5.UIMessage[] }) => void (history = messages);
    const seen = await readTypes(result.toUIMessageStream({ originalMessages, onFinish }), input);
    return { settled: await turn.settled, history, seen };
  },
  async streamBot(input) {
    const turn = botOf5(input);
    const result = v5.streamText({
      model: model5(input),
      ...turn,
      maxRetries: 0,
      onError: ({ error }) => input.onError?.(error),
    });
    for await (const { type } of result.fullStream) input.onPart?.(type);
    const own = Promise.resolve(result.response.then(({ messages }) => messages)).catch(() => undefined);
    return { settled: await turn.settled, own: await own };
  },
  async generate(input) {
    const turn = turnOf5(input);
    await v5.generateText({ model: model5(input), ...turn, maxRetries: 0 }).catch(() => {});
    return turn.settled;
  },
};

function model5(input: TurnInput) {
  return openModel(input, { openAi: createOpenAiV2, anthropic: createAnthropicV2 });
}

function turnOf5(input: TurnInput) {
  const history = v5.convertToModelMessages(input.history as v5.UIMessage[]);
  return botOf5({ ...input, history });
}

function botOf5({ history, slow, fast, canSearch, format, ...rest }: TurnInput) {
  const tools = {
    slow: v5.tool({ inputSchema, execute: slow }),
    fast: v5.tool({ inputSchema, execute: fast }),
    ...(canSearch ? search5(format) : {}),
  };
  return createStoppableTurn({ ...toSettings(rest), history: history as v5.ModelMessage[], tools });
}

function search5(format: WireFormat): v5.ToolSet {
  const settings = { apiKey: 'none' };
  // Under `exactOptionalPropertyTypes` its type does not fit its own package's.
  if (format === 'anthropic') return { web_search: createAnthropicV2(settings).tools.webSearch_20250305({}) as never };
  return { web_search: createOpenAiV2(settings).tools.webSearch({}) as never };
}

async function readTypes(
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
