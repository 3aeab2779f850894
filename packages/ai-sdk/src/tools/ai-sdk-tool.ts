/** The part of an AI SDK tool that matters here. Any tool of `ai` fits; the package itself is not needed. */
export interface AiSdkTool {
  readonly type?: string | undefined;
  readonly description?: string | ((options: never) => string) | undefined;
  readonly inputSchema?: unknown;
  readonly execute?: ((input: never, options: never) => unknown) | undefined;
  readonly toModelOutput?: ((options: never) => unknown) | undefined;
}

/** What an AI SDK tool is told about its call. */
export interface AiSdkCallOptions {
  readonly toolCallId: string;
  readonly abortSignal?: AbortSignal;
  readonly [other: string]: unknown;
}

export type Execute = (input: unknown, options: AiSdkCallOptions) => unknown;

/** How one tool bears a cancel. A tool that must `finish` needs a bound. */
export type ToolBound =
  | { readonly whenCancelled?: 'interrupt'; readonly timeoutMs?: number }
  | { readonly whenCancelled: 'finish'; readonly timeoutMs: number };

export function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
}

/** Fails early where settings name a tool that is not there: a misspelt bound bounds nothing. */
export function checkNames(argument: string, named: object, tools: object): void {
  const unknown = Object.keys(named).filter((name) => !Object.hasOwn(tools, name));
  if (unknown.length === 0) return;
  throw new TypeError(
    `${argument}: there is no tool '${unknown.join("', '")}'; the tools are ${Object.keys(tools).join(', ')}`,
  );
}
