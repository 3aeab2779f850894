import { type Content, defineTool, SettingsError, type Tool, type ToolContext, type ToolResult } from '@whoa/core';
import type { ContentPart, InputSchema, ToolDefinition } from '@whoa/core/embed';
import type { Effects } from '@whoa/core/internal';
import { asJson, asText } from '../messages/as-json.ts';
import {
  type AiSdkTool,
  checkNames,
  type Execute,
  isAsyncIterable,
  readStream,
  type ToolBound,
  toToolResult,
} from './ai-sdk-tool.ts';

/** Settings that an AI SDK tool does not have itself. */
type AiSdkToolSettings = ToolBound & {
  readonly effects?: Effects | undefined;
  readonly replay?: 'safe' | 'never' | undefined;
};

export interface FromAiSdkToolsOptions {
  /** Settings by tool name. */
  readonly settings?: Readonly<Record<string, AiSdkToolSettings>> | undefined;
  /** Passed to every tool as its `context`. Defaults to the context of the run. */
  readonly context?: unknown;
}

/**
 * Converts AI SDK tools into tools for an agent. They receive a cancel through `abortSignal`, as in the AI SDK. Tools without
 * `execute` run in the page: see `answeredBy`.
 *
 * @returns One tool for each entry, in the same order.
 * @throws {@link SettingsError} when a name is not valid, or `settings` names an unknown tool.
 *
 * @example
 * ```ts
 * import { fromAiSdkTools } from '@whoa/ai-sdk';
 * import { createAgent } from '@whoa/core';
 * import { tool } from 'ai';
 * import { z } from 'zod';
 *
 * const search = tool({ inputSchema: z.object({ query: z.string() }), execute: ({ query }) => `Nothing about ${query}` });
 * const agent = createAgent({
 *   name: 'assistant',
 *   model,
 *   tools: fromAiSdkTools({ search }, { settings: { search: { effects: 'read' } } }),
 * });
 * ```
 */
export function fromAiSdkTools(
  tools: Readonly<Record<string, AiSdkTool>>,
  options: FromAiSdkToolsOptions = {},
): Tool[] {
  const { settings = {}, context } = options;
  checkNames('settings', settings, tools);
  const optionsFor = (call: Pick<ToolContext, 'callId' | 'signal' | 'context'>) => ({
    toolCallId: call.callId,
    abortSignal: call.signal,
    messages: [],
    context: context ?? call.context,
  });
  return Object.entries(tools).map(([name, tool]) => {
    const { needsApproval } = tool;
    const about: Omit<ToolDefinition<unknown>, 'execute' | 'whenCancelled' | 'answeredBy'> = {
      ...settings[name],
      name,
      description: readDescription(tool, context),
      ...toSchema(name, tool.inputSchema),
      ...(Boolean(needsApproval) && {
        needsApproval: (input, call) =>
          typeof needsApproval !== 'function' || (needsApproval.call(tool, input, optionsFor(call)) as boolean),
      }),
    };
    if (tool.execute === undefined) return defineTool({ ...about, answeredBy: 'client' });
    const execute = tool.execute.bind(tool) as Execute;
    const definition: ToolDefinition<unknown> = {
      ...(about as ToolDefinition<unknown>),
      async execute(input, call) {
        const result = execute(input, { ...optionsFor(call), effectKey: call.effectKey });
        const show = (value: unknown): void => call.update(toToolResult(value));
        const output = isAsyncIterable(result) ? await readStream(result, call, show) : await result;
        return toModelResult(tool, { toolCallId: call.callId, input, output });
      },
    };
    return defineTool(definition);
  });
}

function readDescription({ description = '' }: AiSdkTool, context: unknown): string {
  return typeof description === 'string' ? description : description({ context } as never);
}

async function toModelResult(
  tool: AiSdkTool,
  about: { readonly toolCallId: string; readonly input: unknown; readonly output: unknown },
): Promise<ToolResult> {
  const plain = toToolResult(about.output);
  if (tool.toModelOutput === undefined) return plain;
  const shown = (await tool.toModelOutput(about as never)) as { readonly type: string; readonly value?: unknown };
  const content = shown.type === 'content' ? toContent(shown.value) : asText(shown.value ?? '');
  return { ...plain, content, isError: shown.type.startsWith('error') };
}

function toContent(value: unknown): Content {
  return (Array.isArray(value) ? (value as unknown[]) : []).map((part): ContentPart => {
    const { type, text, data, mediaType } = part as Readonly<Record<string, unknown>>;
    const inner = typeof data === 'object' && data !== null ? (data as { readonly data?: unknown }).data : data;
    if (type === 'text' && typeof text === 'string') return { type, text };
    if (typeof inner === 'string' && typeof mediaType === 'string' && mediaType.startsWith('image/'))
      return { type: 'image', mediaType, data: inner };
    return { type: 'text', text: asJson(part) };
  });
}

/** What the AI SDK's `jsonSchema()` and `zodSchema()` create. */
type AiSdkSchema = { readonly jsonSchema?: unknown; readonly validate?: (value: unknown) => unknown } | undefined;

function toSchema(name: string, given: unknown): Pick<Tool, 'inputSchema' | 'inputJsonSchema'> {
  if (typeof given === 'object' && given !== null && '~standard' in given) return { inputSchema: given as InputSchema };
  const schema = (typeof given === 'function' ? (given as () => unknown)() : given) as AiSdkSchema;
  const json = schema?.jsonSchema;
  if (typeof json !== 'object' || json === null || 'then' in json) {
    throw new SettingsError(
      'tools',
      `the inputSchema of '${name}' is neither a Standard Schema (zod, valibot, arktype) nor jsonSchema({ … })`,
    );
  }
  const validate = async (value: unknown): Promise<{ value: unknown } | { issues: { message: string }[] }> => {
    if (schema?.validate === undefined) return { value };
    const result = (await schema.validate(value)) as { success: boolean; value?: unknown; error?: Error };
    return result.success ? { value: result.value } : { issues: [{ message: result.error?.message ?? 'invalid' }] };
  };
  return {
    inputSchema: { '~standard': { version: 1, vendor: 'ai-sdk', validate } },
    inputJsonSchema: json as Record<string, unknown>,
  };
}
