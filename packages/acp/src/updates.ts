import type { Content, Json, StopReport, Usage } from '@whoa/core';
import type { CallState } from '@whoa/core/embed';
import type { PlanEntry } from '@whoa/core/internal';

/** An update for a client, independent of the protocol version. */
export type Update =
  | { readonly type: 'user'; readonly messageId: string; readonly content: Content; readonly isEcho?: boolean }
  | { readonly type: 'text' | 'thought'; readonly messageId: string; readonly text: string }
  | CallUpdate
  | { readonly type: 'plan'; readonly entries: readonly PlanEntry[] }
  /** Model tokens in the context window now, and its size. */
  | { readonly type: 'usage'; readonly used: number; readonly size: number }
  | { readonly type: 'info'; readonly title: string; readonly updatedAt: number }
  | { readonly type: 'state'; readonly state: 'running' | 'requires_action' }
  | { readonly type: 'state'; readonly state: 'idle'; readonly end: PromptResult };

export type CallKind = 'read' | 'edit' | 'search' | 'execute' | 'fetch' | 'think' | 'other';
export type CallStatus = 'pending' | 'in_progress' | 'completed' | 'failed' | 'cancelled';

/** What has changed about one call. */
export interface CallUpdate {
  readonly type: 'call';
  readonly callId: string;
  /** The client has not seen the call before. */
  readonly isNew?: boolean;
  readonly tool?: string;
  readonly title?: string;
  readonly kind?: CallKind;
  readonly status?: CallStatus;
  readonly content?: readonly CallContent[];
  readonly locations?: readonly Location[];
  readonly input?: unknown;
  readonly output?: Json;
  /** Whether it can be cancelled individually, from now on. */
  readonly isCancellable?: boolean;
  /** The latest time until which a stop waits for it, in milliseconds since the epoch. */
  readonly waitsUntil?: number;
  /** How it was stopped, if it was. */
  readonly stopped?: { readonly state: CallState; readonly reason?: string };
}

export type CallContent =
  | { readonly type: 'content'; readonly content: Content }
  | {
      readonly type: 'diff';
      readonly path: string;
      readonly isNew: boolean;
      readonly patch?: string;
      readonly hunks: readonly { readonly oldText: string; readonly newText: string }[];
    };

export interface Location {
  readonly path: string;
  readonly line?: number;
}

/** How a prompt ended. */
export interface PromptResult {
  readonly stop: 'end_turn' | 'max_tokens' | 'max_turn_requests' | 'cancelled' | 'error';
  /** The message when it failed. */
  readonly message?: string;
  readonly usage?: Usage;
  readonly report?: StopReport;
}
