import type { RunEvent } from '../run/report/events.ts';
import type { Outcome } from '../run/report/outcome.ts';
import type { EarlyStatus, Policy } from './policy.ts';

/** The result of one message. */
export interface Reply {
  readonly conversationId: string;
  readonly messageId: string;
  readonly status: 'answered' | 'failed' | EarlyStatus;
  /** Text for the user; after a cancel, what was done so far. */
  readonly text: string;
  /** The outcome of the run that answered, if there was one. */
  readonly outcome?: Outcome;
}

type Stopping = Extract<RunEvent, { type: 'cancel-requested' | 'level-changed' | 'call-waiting' }>;

/** The events of a stop. Without an active run there is no `runId`. */
type StoppingEvent<Event> = Event extends unknown ? Omit<Event, 'runId' | 'at'> & { readonly runId?: string } : never;

/** Events of a conversation. Events of a run go to `onEvent` of its message. */
export type ConversationEvent<Answer = Reply> = { readonly at: number; readonly conversationId: string } & (
  | { readonly type: 'message-received'; readonly messageId: string; readonly policy: Policy }
  | { readonly type: 'message-answered'; readonly reply: Answer }
  | StoppingEvent<Stopping>
);

/** An event before its conversation stamps it. */
export type UnstampedEvent<Event> = Event extends unknown ? Omit<Event, 'at' | 'conversationId'> : never;
