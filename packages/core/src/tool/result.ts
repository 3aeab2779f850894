import type { CancelReason } from '../stop/token/reason.ts';

/** Any JSON value. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json | undefined };

/** A piece of content: text, or an image. */
export type ContentPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image'; readonly mediaType: string /** Base64. */; readonly data: string };

/** The content a model reads. */
export type Content = string | readonly ContentPart[];

/** What a tool does to its environment. Decides whether a call needs approval. */
export type Effects = 'read' | 'write' | 'execute';

/** The result of a tool. `content` is for the model; `details` are for users and never reach a model. */
export interface ToolResult {
  readonly content: Content;
  readonly details?: Json;
  readonly isError?: boolean;
}

/**
 * How a call ended. `interrupted`: it stopped when asked to. `unknown`: it was still running when the wait ended; it
 * may or may not have taken effect. `not-started`: it never started.
 */
export type CallState = 'finished' | 'failed' | 'interrupted' | 'not-started' | 'unknown';

/** The result of one call. Each call has exactly one. */
export interface CallResult {
  readonly callId: string;
  readonly tool: string;
  readonly state: CallState;
  readonly content: Content;
  readonly details?: Json;
  readonly isError: boolean;
  /** Why it was stopped, if it was. */
  readonly reason?: CancelReason;
  /** What an interrupted call reported as it ended, if that was more than "stopped". */
  readonly error?: string;
  /** How many secrets were removed from it. */
  readonly redacted?: number;
  readonly startedAt?: number;
  readonly endedAt: number;
  /** When its tool found out how it ended, after that was unknown. */
  readonly foundOut?: { readonly at: number };
}

/**
 * Returns the text of some content.
 *
 * @returns The text; images are named, not shown.
 */
export function toText(content: Content): string {
  if (typeof content === 'string') return content;
  return content.map((part) => (part.type === 'text' ? part.text : `[image ${part.mediaType}]`)).join('');
}

/** More facts about a stopped call. */
export interface StopFacts {
  /** Defaults to the worst case, `execute`. */
  readonly effects?: Effects | undefined;
  readonly error?: string | undefined;
}

/**
 * Writes the text that a model gets for a call without its own result. It names only the kind of the reason.
 *
 * @returns The text.
 */
export function describeStoppedCall(
  state: 'interrupted' | 'not-started' | 'unknown',
  reason: CancelReason,
  { effects = 'execute', error }: StopFacts = {},
): string {
  const { kind } = reason;
  if (state === 'not-started') return `Not started: cancelled (${kind}). It had no effect.`;
  if (state === 'unknown')
    return `Outcome unknown: it was still running when the wait for it ended (${kind}). It may have taken effect.`;
  const reported = error === undefined ? '.' : `, and reported: ${error}${/[.!?]$/.test(error) ? '' : '.'}`;
  const partly = effects === 'read' ? '' : ' It may have taken effect in part.';
  return `Interrupted (${kind}) before it finished${reported}${partly}`;
}
