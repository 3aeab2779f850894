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
  | { readonly whenCancelled?: 'interrupt'; readonly timeoutMs?: number }
  | { readonly whenCancelled: 'finish'; readonly timeoutMs: number };

export function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
}

/** Throws if settings name an unknown tool: a misspelt name would silently limit nothing. */
export function checkNames(argument: string, named: object, tools: object): void {
  const unknown = Object.keys(named).filter((name) => !Object.hasOwn(tools, name));
  if (unknown.length === 0) return;
  throw new TypeError(
    `${argument}: there is no tool '${unknown.join("', '")}'; the tools are ${Object.keys(tools).join(', ')}`,
  );
}
