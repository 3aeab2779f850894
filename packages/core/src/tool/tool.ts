import type { WorkContext } from '../stop/bounded.ts';
import { CancelledError } from '../stop/errors.ts';
import { SHIELD_MS_MAX } from '../stop/shield.ts';
import type { CancellationToken } from '../stop/token.ts';
import type { ToolResult } from './result.ts';
import type { InputSchema } from './schema.ts';

/** What a tool does to the world; decides whether a call needs approval. */
export type Effects = 'read' | 'write' | 'execute';

/** What a tool may return: a text is short for a result with that content. */
export type RawResult = ToolResult | string;

export interface ToolContext extends WorkContext {
  readonly callId: string;
  /** Shows what there is so far. It is kept if the call is interrupted. */
  readonly update: (partial: ToolResult) => void;
  /** Tells what happens inside the call, for calls that are runs of their own. */
  readonly nest: (event: { readonly type: string }) => void;
}

export interface UndoContext {
  readonly callId: string;
  readonly signal: AbortSignal;
}

export interface Tool<Input = unknown> {
  readonly name: string;
  readonly description: string;
  readonly input: InputSchema<Input>;
  /** For schemas that cannot describe themselves: the JSON Schema shown to the model. */
  readonly inputJsonSchema?: Record<string, unknown>;
  /** `finish`: must not be cut in half. A cancel then waits for it, at most `timeoutMs`. */
  readonly whenCancelled: 'interrupt' | 'finish';
  readonly timeoutMs?: number;
  /** The worst is assumed (`execute`) when a tool does not say. */
  readonly effects: Effects;
  /** May a call that was cut off by a crash be run again? `never` unless the tool says so. */
  readonly replay: 'safe' | 'never';
  /** For sub-agents: their calls hear every level, and bound themselves instead of being abandoned at `kill`. */
  readonly nested: boolean;
  /** Calls with a key in common never run at the same time. */
  exclusive?(input: Input): readonly string[];
  execute(input: Input, context: ToolContext): RawResult | Promise<RawResult>;
  /** Takes a completed call back. Starts at most once per call. */
  undo?(result: ToolResult & { readonly input: Input }, context: UndoContext): Promise<void> | void;
  /** May an undo that was cut off be started again? */
  readonly undoRepeatable: boolean;
}

interface ToolDefinitionBase<Input>
  extends Pick<Tool<Input>, 'name' | 'description' | 'input' | 'inputJsonSchema' | 'exclusive' | 'execute' | 'undo'> {
  readonly effects?: Effects;
  readonly replay?: 'safe' | 'never';
  readonly undoRepeatable?: boolean;
}

/** What a tool's author writes. A tool that must `finish` needs a `timeoutMs`: that is the longest a cancel can wait. */
export type ToolDefinition<Input> = ToolDefinitionBase<Input> &
  (
    | { readonly whenCancelled?: 'interrupt'; readonly timeoutMs?: number; readonly nested?: boolean }
    | { readonly whenCancelled: 'finish'; readonly timeoutMs: number; readonly nested?: false }
  );

const NAME = /^[a-zA-Z][a-zA-Z0-9_-]{0,63}$/;

/** Defines a tool, filling in the careful defaults and refusing what cannot work. */
export function defineTool<Input>(definition: ToolDefinition<Input>): Tool<Input> {
  const { name, timeoutMs } = definition;
  if (!NAME.test(name)) {
    throw new TypeError(`name: '${name}' must be 1 to 64 of a-z, A-Z, 0-9, _ and -, and start with a letter`);
  }
  if (timeoutMs !== undefined && !(timeoutMs > 0 && timeoutMs <= SHIELD_MS_MAX)) {
    throw new RangeError(`timeoutMs: '${name}' needs more than 0 and at most ${SHIELD_MS_MAX} ms, got ${timeoutMs}`);
  }
  return {
    whenCancelled: 'interrupt',
    effects: 'execute',
    replay: 'never',
    nested: false,
    undoRepeatable: false,
    ...definition,
  };
}

/**
 * For a tool to throw when it stops as asked and has something to hand over. A tool that can only let go of work that runs
 * elsewhere says `effect: 'unknown'`, and so does its result.
 */
export function interrupted(
  token: CancellationToken,
  partial: ToolResult,
  options: { readonly effect?: 'unknown' | undefined } = {},
): CancelledError<ToolResult> {
  const reason = token.reason ?? { kind: 'user', at: token.clock.now() };
  return new CancelledError(reason, { partial, ...options });
}

/** A `ToolResult` from whatever short form a tool returned. One that its compiler did not watch may return anything. */
export function resultFrom(value: unknown): ToolResult {
  if (typeof value === 'string') return { content: value };
  return isResult(value) ? value : { content: 'It returned no content.' };
}

function isResult(value: unknown): value is ToolResult {
  return typeof value === 'object' && value !== null && 'content' in value && value.content !== undefined;
}
