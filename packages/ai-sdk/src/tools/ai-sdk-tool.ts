import { createInterruptedError, type Json, SettingsError, type ToolResult } from '@whoa/core';
import type { WorkContext } from '@whoa/core/embed';
import { settings, shieldMs } from '@whoa/core/internal';
import { asJson, asText } from '../messages/as-json.ts';

/** The part of an AI SDK tool that is used here. Any tool of `ai` fits; the package itself is not needed. */
export interface AiSdkTool {
  readonly type?: string | undefined;
  readonly description?: string | ((options: never) => string) | undefined;
  readonly inputSchema?: unknown;
  readonly execute?: ((input: never, options: never) => unknown) | undefined;
  /** A boolean or a function, from version 6 on. */
  readonly needsApproval?: unknown;
  readonly toModelOutput?: ((options: never) => unknown) | undefined;
}

/** The options that an AI SDK tool gets with its call. */
export interface AiSdkCallOptions {
  readonly toolCallId: string;
  readonly abortSignal?: AbortSignal;
  readonly [other: string]: unknown;
}

export type Execute = (input: unknown, options: AiSdkCallOptions) => unknown;

/** How one tool reacts to a cancel. A tool that must `finish` needs a time limit. */
export type ToolBound =
  | { readonly whenCancelled?: 'interrupt' | undefined; readonly timeoutMs?: number | undefined }
  | { readonly whenCancelled: 'finish'; readonly timeoutMs: number };

/**
 * Reads the stream of a tool; its last value is the result. At `abort` the tool is asked to return at its next value: one
 * that ignores its signal would do the rest of its work after the stop.
 */
export async function readStream(
  stream: AsyncIterable<unknown>,
  { signal, token }: WorkContext,
  show: (value: unknown) => void,
): Promise<unknown> {
  let last: unknown;
  for await (const value of stream) {
    last = value;
    show(value);
    if (signal.aborted) throw createInterruptedError(token, toToolResult(last));
  }
  return last;
}

/** A string is for the model; anything else is shown to the model as JSON and kept whole as details. */
export function toToolResult(output: unknown): ToolResult {
  const details = typeof output === 'string' ? undefined : (JSON.parse(asJson(output ?? null)) as Json);
  return { content: asText(output ?? null), ...(details !== undefined && { details }) };
}

export function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
}

/** Throws if settings name an unknown tool: a misspelt name would silently limit nothing. */
export function checkNames(argument: string, named: object, tools: object): void {
  const names = Object.keys(tools);
  const unknown = Object.keys(named).find((name) => !names.includes(name));
  if (unknown === undefined) return;
  const closest = settings.findClosestName(unknown, names);
  const meant = closest === undefined ? '' : `did you mean '${closest}'? `;
  throw new SettingsError(
    argument,
    `there is no tool '${unknown}'; ${meant}${names.length === 0 ? 'pass it in `tools` too' : `The tools are ${names.join(', ')}`}`,
  );
}

/**
 * Creates the rule for `mustFinish`: tools that there are, each with its time limit.
 *
 * @returns The rule.
 */
export function mustFinishRule(tools: object): settings.Rule {
  const bound = settings.group<{ timeoutMs: number }>({ timeoutMs: settings.required(shieldMs) });
  return (value, field) => {
    if (!settings.isObject(value)) throw settings.unexpected(field, value, 'tools by name: { TOOL: { timeoutMs } }');
    checkNames(field, value, tools);
    const given = Object.entries(value).filter((entry) => entry[1] !== undefined);
    return Object.fromEntries(given.map(([name, one]) => [name, bound(one, `${field}.${name}`)]));
  };
}
