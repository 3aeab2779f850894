import type { AppContext } from '../stop/app-context.ts';
import { checkFinishBound, type WorkContext } from '../stop/bounded/bounded.ts';
import { CancelledError } from '../stop/errors.ts';
import * as settings from '../stop/settings.ts';
import { shieldMs } from '../stop/token/shield.ts';
import type { CancellationToken } from '../stop/token/token.ts';
import type { Effects, Json, ToolResult } from './result.ts';
import { type InputSchema, inputSchema } from './schema.ts';

/** What a tool may return. A string is short for a result with that content; other plain data is read as JSON. */
export type RawResult = ToolResult | Json;

/** A preview of a call, made by its tool for the user who has to approve it. */
export interface CallPreview {
  /** The folder it runs in. */
  readonly cwd?: string;
  /** What confines it: the name of a sandbox, or `none`. */
  readonly sandbox?: string;
  readonly change?: FileChange;
}

/** A file now, and as a call would leave it. */
interface FileChange {
  /** Absolute, with every link resolved. */
  readonly path: string;
  readonly isNew: boolean;
  /** A unified diff; `null` where the versions are too large or too different to compare. */
  readonly diff: string | null;
  /** The fields of the input that the diff replaces. */
  readonly fields: readonly string[];
  /** Identifies the state of the file that the diff was made from. */
  readonly baseVersion: string;
}

/** The context of a call: its id, its token and signal, and functions to report progress and clean up. */
export interface ToolContext extends WorkContext {
  readonly callId: string;
  /** Identifies the work that the call belongs to: a task, over all its workers, or a run. A sub-agent's begins with its parent's and `/`. */
  readonly workId?: string | undefined;
  /** The context that its run was started with. */
  readonly context?: AppContext | undefined;
  /**
   * Identifies the effect of this call in the outside world: an idempotency key. No other call has it, and the call keeps it on
   * every worker, in every retry, and for its undo.
   */
  readonly effectKey: string;
  /** The preview shown to the user who approved the call, if a user was asked. */
  readonly approvedPreview?: CallPreview | undefined;
  /** Shows a partial result. It is kept if the call is interrupted. */
  readonly update: (partial: RawResult) => void;
  /** Reports an event of a run inside the call. */
  readonly emitNested: (event: { readonly type: string }) => void;
}

/** What code gets that runs before a call starts. */
export interface QuestionContext {
  readonly signal: AbortSignal;
  /** The context that the run was started with. */
  readonly context?: AppContext | undefined;
}

interface UndoContext extends QuestionContext {
  readonly callId: string;
  /** As in `ToolContext`. An older journal may have none. */
  readonly effectKey?: string | undefined;
  /** As in `ToolContext`. */
  readonly workId?: string | undefined;
}

/** The context of a `findOut`: the call that it is about, and a signal that aborts when the look must end. */
export interface FindOutContext extends Omit<UndoContext, 'effectKey'> {
  /** The key that `execute` had. */
  readonly effectKey: string;
  readonly startedAt: number;
}

/** What a look at the outside world found about a call. */
export type Finding =
  | { readonly found: 'finished'; readonly result: RawResult }
  | { readonly found: 'not-started' }
  | { readonly found: 'unknown' };

/** A tool as agents and runtimes use it. Create one with `defineTool`. */
export interface Tool<Input = unknown> {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: InputSchema<Input>;
  /** For schemas that cannot describe themselves: the JSON Schema shown to the model. */
  readonly inputJsonSchema?: Record<string, unknown>;
  /** `finish`: must not be interrupted. A cancel then waits for it, at most `timeoutMs`. */
  readonly whenCancelled: 'interrupt' | 'finish';
  readonly timeoutMs?: number;
  /** Defaults to the worst case, `execute`. */
  readonly effects: Effects;
  /** Whether a call that was cut off by a crash may run again. Defaults to `never`. */
  readonly replay: 'safe' | 'never';
  /** `allowed`: the same call may be made again and again, for example to poll. The budget `repeats` ignores it. */
  readonly repeats?: 'allowed' | undefined;
  /** Whether a call needs a yes, whatever its effects. It does unless this returns `false`; with no one to ask, it does not start. */
  needsApproval?(input: Input, context: QuestionContext & { readonly callId: string }): boolean | Promise<boolean>;
  /** Calls that share a key never run at the same time. */
  exclusive?(input: Input): readonly string[];
  /**
   * Who gives the result of a call, instead of `execute`. `user`: the call is a question to a person. `client`: the call runs in
   * the page or the program that reads the task.
   */
  readonly answeredBy?: 'user' | 'client';
  /** Checks the answer. What it returns is the result of the call. */
  readonly answerSchema?: InputSchema;
  /** For schemas that cannot describe themselves: the JSON Schema shown to whoever answers. */
  readonly answerJsonSchema?: Record<string, unknown>;
  /** Does the work. It should stop when `context.signal` aborts. */
  execute(input: Input, context: ToolContext): RawResult | Promise<RawResult>;
  /** Describes what a call would do. It changes nothing. `execute` receives what was approved as `context.approvedPreview`. */
  preview?(input: Input, context: QuestionContext): CallPreview | Promise<CallPreview>;
  /** Undoes a completed call. Starts at most once per call. */
  undo?(result: ToolResult & { readonly input: Input }, context: UndoContext): Promise<void> | void;
  /**
   * Finds out whether a call whose end is unknown took effect, from evidence outside: a provider's record, a table of your own. It
   * never starts, repeats or changes the effect. Return `finished(result)`, `notStarted()` or `stillUnknown()` from
   * `@whoa/core/effects`.
   */
  findOut?(input: Input, context: FindOutContext): Finding | Promise<Finding>;
  /** Whether an undo that was cut off may be started again. */
  readonly undoRepeatable: boolean;
}

type ToolDefinitionBase<Input> = OrUndefined<Omit<Tool<Input>, 'timeoutMs' | Answered | keyof typeof DEFAULTS>> & {
  readonly [Name in 'effects' | 'replay' | 'undoRepeatable']?: Tool[Name] | undefined;
};

/** What is optional also accepts `undefined`. */
type OrUndefined<T> = { [Name in keyof T]: object extends Pick<T, Name> ? T[Name] | undefined : T[Name] };

type Answered = 'answeredBy' | 'answerSchema' | 'answerJsonSchema';

/** What a tool's author writes. One that must `finish` needs a `timeoutMs`: the longest that a cancel can wait. */
export type ToolDefinition<Input> = ToolDefinitionBase<Input> & { readonly answeredBy?: undefined } & (
    | { readonly whenCancelled?: 'interrupt' | undefined; readonly timeoutMs?: number | undefined }
    | { readonly whenCancelled: 'finish'; readonly timeoutMs: number }
  );

/** A tool without code. */
type AnsweredToolDefinition<Input> = Omit<ToolDefinitionBase<Input>, 'execute'> &
  OrUndefined<Pick<Tool, 'timeoutMs' | 'answerJsonSchema'>> & { readonly execute?: undefined } & (
    | { readonly answeredBy: 'client'; readonly answerSchema?: InputSchema | undefined }
    | { readonly answeredBy: 'user'; readonly answerSchema: InputSchema }
  );

const NAME = /^[a-zA-Z][a-zA-Z0-9_-]{0,63}$/;

/**
 * Defines a tool, with safe defaults for what you leave out. The type of the input comes from its schema.
 *
 * @returns The tool.
 * @throws {@link SettingsError} when the definition is not valid, for example `whenCancelled: 'finish'` without
 * `timeoutMs`.
 *
 * @example
 * ```ts
 * import { defineTool } from '@whoa/core';
 * import { z } from 'zod';
 *
 * const weather = defineTool({
 *   name: 'weather',
 *   description: 'The weather in a city',
 *   inputSchema: z.object({ city: z.string() }),
 *   effects: 'read',
 *   execute: async ({ city }, { signal }) => (await fetch(`https://weather.example.com/${city}`, { signal })).text(),
 * });
 * ```
 */
export function defineTool<Input>(definition: ToolDefinition<Input> | AnsweredToolDefinition<Input>): Tool<Input> {
  return withDefaults(settings.readSettings<Tool<Input>>(definition, TOOL_RULES));
}

function withDefaults<Input>(given: Tool<Input>, within = ''): Tool<Input> {
  checkFinishBound(given);
  checkAnswered(given, within);
  const answered = given.answeredBy && { execute: hasNoCode };
  // A question to a person changes nothing.
  const defaults = given.answeredBy === 'user' ? { ...DEFAULTS, effects: 'read' } : DEFAULTS;
  const tool: Tool<Input> = Object.freeze({ ...defaults, ...given, ...answered });
  defined.add(tool);
  return tool;
}

/** What a tool does if its definition does not say. */
export const DEFAULTS = {
  whenCancelled: 'interrupt',
  effects: 'execute',
  replay: 'never',
  undoRepeatable: false,
} as const;

/** Stands in for the code of a tool that is answered. */
function hasNoCode(): never {
  throw new TypeError('this tool has no code: its calls are answered');
}

function checkAnswered<Input>(tool: Tool<Input>, within: string): void {
  const { answeredBy, answerSchema, whenCancelled } = tool;
  const execute: unknown = Reflect.get(tool, 'execute');
  if (answeredBy === undefined) settings.callback(execute, `${within}execute`);
  else if (execute !== undefined && execute !== hasNoCode)
    throw new settings.SettingsError(`${within}execute`, `a tool that a ${answeredBy} answers has no code of its own`);
  else if (whenCancelled === 'finish')
    throw new settings.SettingsError(`${within}whenCancelled`, 'an answer cannot be made to come; leave it out');
  else if (answeredBy === 'user') inputSchema(answerSchema, `${within}answerSchema`);
}

const defined = new WeakSet<object>();

/**
 * The rule for a setting that is a tool. A tool that was not made with `defineTool` is checked the same way, and the
 * checked values are kept: later changes to the object have no effect. Its methods are still called on the object
 * itself.
 */
const toolRule: settings.Rule = (value, field) => {
  if (!settings.isObject(value)) throw settings.unexpected(field, value, 'a tool; make one with defineTool');
  if (defined.has(value)) return value;
  if ('inputSchema' in value && !('name' in value))
    throw new settings.SettingsError(field, `it has no name; ${CONVERT}`);
  const tool: Record<string, unknown> = {
    ...settings.readSettings<Tool>(value, TOOL_RULES, { within: field, allowUnknown: true }),
  };
  for (const name of ['needsApproval', 'exclusive', 'execute', 'preview', 'undo', 'findOut']) {
    const method = tool[name];
    if (typeof method === 'function' && method !== hasNoCode) tool[name] = method.bind(value) as unknown;
  }
  return withDefaults(tool as unknown as Tool, `${field}.`);
};

const CONVERT = 'convert tools of the AI SDK with fromAiSdkTools({ … }) from @whoa/ai-sdk';

/** The rule for tools that are used together: names must be unique. */
export const toolsRule: settings.Rule = (value, field) => {
  if (settings.isObject(value) && !settings.isList(value))
    throw new settings.SettingsError(field, `expected a list, got an object; ${CONVERT}`);
  const tools = settings.listOf(toolRule)(value, field) as readonly Tool[];
  const names = new Set<string>();
  for (const { name } of tools) {
    if (names.has(name)) throw new settings.SettingsError(field, `two tools are named '${name}'`);
    names.add(name);
  }
  return tools;
};

const TOOL_RULES: settings.Rules<Tool> = {
  name: settings.required(settings.rule(`1 to 64 of a-z, A-Z, 0-9, _ and -, the first a letter`, isToolName)),
  description: settings.required(settings.text),
  inputSchema: settings.required(inputSchema),
  inputJsonSchema: settings.rule('a JSON Schema', settings.isObject),
  whenCancelled: settings.oneOf('interrupt', 'finish'),
  timeoutMs: shieldMs,
  effects: settings.oneOf('read', 'write', 'execute'),
  replay: settings.oneOf('safe', 'never'),
  repeats: settings.oneOf('allowed'),
  preview: settings.callback,
  needsApproval: settings.callback,
  exclusive: settings.callback,
  answeredBy: settings.oneOf('user', 'client'),
  answerSchema: inputSchema,
  answerJsonSchema: settings.rule('a JSON Schema', settings.isObject),
  execute: settings.callback,
  undo: settings.callback,
  undoRepeatable: settings.flag,
  findOut: settings.callback,
};

function isToolName(value: unknown): boolean {
  return typeof value === 'string' && NAME.test(value);
}

/**
 * Creates the error for a tool to throw when it stops as asked and has a partial result. `effect: 'unknown'` is for a
 * tool that can only stop waiting for work that runs elsewhere, `'none'` for one that knows it changed nothing.
 *
 * @returns The error. It carries the reason of the token, so create it only after a cancel.
 *
 * @example
 * ```ts
 * import { createInterruptedError } from '@whoa/core';
 *
 * if (token.isCancelled) throw createInterruptedError(token, { content: 'Counted to 7 so far' });
 * ```
 */
export function createInterruptedError(
  token: CancellationToken,
  partial: ToolResult,
  options: { readonly effect?: 'unknown' | 'none' | undefined } = {},
): CancelledError<ToolResult> {
  const reason = token.reason ?? { kind: 'user', at: token.clock.now() };
  return new CancelledError(reason, { partial, ...options });
}
