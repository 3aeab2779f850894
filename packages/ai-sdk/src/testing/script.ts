/** A fault at one place of an answer. */
export type Fault =
  /** Sends nothing more until the promise settles, or, with `true`, until the client disconnects. */
  | { readonly stall: true | PromiseLike<unknown> }
  /** Destroys the socket. */
  | { readonly cut: true }
  /** Ends the body normally, although the reply is not complete. */
  | { readonly end: true }
  /** Sends a frame with this text instead of its JSON. */
  | { readonly malformed: string }
  /** Sends the vendor's own error event mid-stream. */
  | { readonly overloaded: true };

/** A text in the pieces in which it is sent, with faults between them. */
export type Chunks = string | readonly (string | Fault)[];

export type ScriptedResponsePart =
  | { readonly text: Chunks }
  /** `signature: false` leaves it out. */
  | { readonly thinking: Chunks; readonly signature?: string | false | undefined }
  /** Thinking that only its vendor can read. */
  | { readonly redacted: string }
  /** `arguments` replaces the JSON of `input`, so it may be broken or sent in pieces. */
  | {
      readonly call: string;
      readonly id?: string | undefined;
      readonly input?: unknown;
      readonly arguments?: Chunks | undefined;
    }
  /** A web search that the vendor runs, and a fault before its result. Chat Completions has none. */
  | { readonly search: string; readonly id?: string | undefined; readonly fault?: Fault | undefined }
  | Fault;

/** The answer to one request. */
export interface ScriptedResponse {
  readonly parts?: readonly ScriptedResponsePart[] | undefined;
  readonly usage?: { readonly inputTokens: number; readonly outputTokens: number } | undefined;
  /** Defaults to `tool-use` after calls and to `stop` otherwise. */
  readonly finish?: 'stop' | 'length' | 'tool-use' | undefined;
  /** Any status other than 200 refuses the request with `message`. */
  readonly status?: number | undefined;
  readonly message?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Waits this long before the first header. */
  readonly beforeHeaders?: Extract<Fault, { stall: unknown }> | undefined;
  /** Sends slowly: one frame, or this many bytes, at a time. */
  readonly pace?: { readonly intervalMs: number; readonly bytes?: number | undefined } | undefined;
}

/** One event of a wire format, ready to send. `words` is the text of the reply in it. */
export interface Frame {
  readonly data: string;
  readonly words?: string;
}

export const USAGE = { inputTokens: 11, outputTokens: 20 } as const;

export function toChunks(chunks: Chunks): readonly (string | Fault)[] {
  return typeof chunks === 'string' ? [chunks] : chunks;
}

/** Returns the text in some chunks. */
export function joinWords(chunks: Chunks): string {
  return toChunks(chunks)
    .filter((chunk) => typeof chunk === 'string')
    .join('');
}

export function toArguments(part: Extract<ScriptedResponsePart, { call: string }>): Chunks {
  return part.arguments ?? JSON.stringify(part.input ?? {});
}

export function toFinish({ finish, parts = [] }: ScriptedResponse): 'stop' | 'length' | 'tool-use' {
  return finish ?? (parts.some((part) => 'call' in part) ? 'tool-use' : 'stop');
}

export function isFault(step: Frame | ScriptedResponsePart): step is Fault {
  return 'stall' in step || 'cut' in step || 'end' in step || 'malformed' in step || 'overloaded' in step;
}
