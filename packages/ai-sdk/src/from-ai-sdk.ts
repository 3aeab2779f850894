import type {
  LanguageModelV3,
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
  LanguageModelV4StreamPart,
  SharedV4ProviderOptions,
} from '@ai-sdk/provider';
import type { Model, ModelRequest } from '@whoa/core/model';
import { toPrompt } from './messages/prompt.ts';
import { Reply } from './messages/reply.ts';
import { wellFormed } from './messages/wire-safe.ts';

/** A model of an AI SDK provider package, of specification `v3` or `v4`. */
export type AiSdkModel = LanguageModelV3 | LanguageModelV4;

/** Settings sent with every request, as the AI SDK names them. */
export type AiSdkSettings = Omit<
  LanguageModelV4CallOptions,
  'prompt' | 'tools' | 'responseFormat' | 'includeRawChunks' | 'abortSignal'
>;

/**
 * Lets an agent use any AI SDK model. Install the provider package yourself and pass its model in.
 *
 * @returns A model for `createAgent`.
 * @throws TypeError when it is not a language model of provider specification v3 or v4.
 *
 * @example
 * ```ts
 * import { anthropic } from '@ai-sdk/anthropic';
 * import { fromAiSdk } from '@whoa/ai-sdk';
 * import { createAgent } from '@whoa/core';
 *
 * const agent = createAgent({ name: 'assistant', model: fromAiSdk(anthropic('claude-sonnet-4-5')) });
 * ```
 */
export function fromAiSdk(model: AiSdkModel, settings: AiSdkSettings = {}): Model {
  const version = readVersion(model);
  const name = `${model.provider}/${model.modelId}`;
  // Chat Completions does not support images in a tool's result; packages would send their bytes as text.
  const promptOptions = { version, imagesInResults: !model.provider.endsWith('.chat') };
  // OpenAI sends its counts at the very end, so its raw events would only double the work.
  const includeRawChunks = !model.provider.startsWith('openai.');
  const doStream = model.doStream.bind(model) as unknown as DoStream;
  const fixed = { ...settings, providerOptions: withoutStoredItems(model.provider, settings.providerOptions) };
  return {
    name,
    source: toSource(model),
    maxOutputTokens: settings.maxOutputTokens,
    stream: (request, { signal }) =>
      new Reply({
        model: name,
        signal,
        open: (abortSignal) =>
          doStream({
            ...fixed,
            prompt: toPrompt(request, promptOptions),
            ...(request.tools.length > 0 && { tools: request.tools.map(toFunctionTool) }),
            includeRawChunks,
            abortSignal,
          }),
      }),
  };
}

/** Packages name themselves `provider.api`, as in `openai.responses`. */
function toSource({ provider: name, modelId }: AiSdkModel): NonNullable<Model['source']> {
  const [provider = name, ...api] = name.split('.');
  return { provider, ...(api.length > 0 && { api: api.join('.') }), model: modelId };
}

type DoStream = (
  options: LanguageModelV4CallOptions,
) => PromiseLike<{ readonly stream: ReadableStream<LanguageModelV4StreamPart> }>;

function readVersion(model: unknown): 'v3' | 'v4' {
  const { specificationVersion: version, doStream } = (typeof model === 'object' && model !== null ? model : {}) as {
    specificationVersion?: unknown;
    doStream?: unknown;
  };
  if ((version === 'v3' || version === 'v4') && typeof doStream === 'function') return version;
  const got = typeof model === 'string' ? `the string '${model}'` : `specification ${JSON.stringify(version)}`;
  throw new TypeError(
    `model: expected a language model of AI SDK provider specification v3 or v4, got ${got}. Install a current provider ` +
      "package (npm install @ai-sdk/anthropic@4, @ai-sdk/openai@4, …) and pass its model, as in fromAiSdk(anthropic('…'))",
  );
}

function toFunctionTool(tool: ModelRequest['tools'][number]): LanguageModelV4FunctionTool {
  const { name, description, inputJsonSchema } = tool;
  return { type: 'function', name, description: wellFormed(description), inputSchema: wellFormed(inputJsonSchema) };
}

/** Sends the whole history, not references to stored items: those of a reply that was cut off may not exist. */
function withoutStoredItems(provider: string, given: SharedV4ProviderOptions = {}): SharedV4ProviderOptions {
  const [family = provider, api] = provider.split('.');
  if (api !== 'responses') return given;
  return { ...given, [family]: { store: false, ...given[family] } };
}
