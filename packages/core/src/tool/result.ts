import type { CancelReason } from '../stop/token/reason.ts';

/** Any JSON value. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json | undefined };

/** A piece of content: text, or an image. */
export type ContentPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image'; readonly mediaType: string /** Base64. */; readonly data: string };

/** What a model reads. */
export type Content = string | readonly ContentPart[];

/** What a tool does to the world; decides whether a call needs approval. */
export type Effects = 'read' | 'write' | 'execute';

/** What a tool returns. `content` is for the model, concise; `details` are for people and never reach a model. */
export interface ToolResult {
  readonly content: Content;
  readonly details?: Json;
  readonly isError?: boolean;
}

/**
 * How a call ended. `interrupted`: it stopped when asked to. `unknown`: it was still running when the wait ended; it may
 * or may not have taken effect. `not-started`: it never began.
 */
export type CallState = 'finished' | 'failed' | 'interrupted' | 'not-started' | 'unknown';

/** One call's one truthful result. */
export interface CallResult {
  readonly callId: string;
  readonly tool: string;
  readonly state: CallState;
  readonly content: Content;
  readonly details?: Json;
  readonly isError: boolean;
  /** Why it was stopped, if it was. */
  readonly reason?: CancelReason;
  /** What an interrupted call reported as it ended, if it was more than that it had stopped. */
  readonly error?: string;
  /** How many keys were taken out of it. */
  readonly redacted?: number;
  readonly startedAt?: number;
  readonly endedAt: number;
}

/**
 * Reads the text of some content.
 *
 * @returns The text; images are named, not shown.
 */
export function toText(content: Content): string {
  if (typeof content === 'string') return content;
  return content.map((part) => (part.type === 'text' ? part.text : `[image ${part.mediaType}]`)).join('');
}

/** What else is known of a call that was stopped. */
export interface StopFacts {
  /** The worst is assumed (`execute`) when it is not known. */
  readonly effects?: Effects | undefined;
  readonly error?: string | undefined;
}

/**
 * Writes what a model is told about a call that has no result of its own. Of the reason it names only the kind.
 *
 * @returns The text.
 */
export function describeStoppedCall(
  state: 'interrupted' | 'not-started' | 'unknown',
  reason: CancelReason,
  { effects = 'execute', error }: StopFacts = {},
): string {
  switch (state) {
    case 'not-started':
      return `Not started: cancelled (${reason.kind}). It had no effect.`;
    case 'interrupted': {
      const reported = error === undefined ? '.' : `, and reported: ${error}${/[.!?]$/.test(error) ? '' : '.'}`;
      const partly = effects === 'read' ? '' : ' It may have taken effect in part.';
      return `Interrupted (${reason.kind}) before it finished${reported}${partly}`;
    }
    case 'unknown':
      return `Outcome unknown: it was still running when the wait for it ended (${reason.kind}). It may have taken effect.`;
  }
}
