import type { StopEvent } from '../../stop/stop-events.ts';
import type { CallEvent } from '../../tool/events.ts';
import type { AssistantMessage, Message, UserMessage } from '../history/message.ts';
import type { Outcome } from './outcome.ts';
import type { UndoState } from './report.ts';

/** What happens while a reply is made. */
export type TurnEvent =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'thinking'; readonly text: string }
  /** The model has begun to ask for a call. It runs only if it asks to the end. */
  | { readonly type: 'call-planned'; readonly callId: string; readonly tool: string }
  | { readonly type: 'turn-retry'; readonly attempt: number; readonly delayMs: number; readonly error: string };

type OwnEvent =
  | { readonly type: 'run-start'; readonly agent: string; readonly input: UserMessage }
  | { readonly type: 'turn-start'; readonly turn: number }
  | { readonly type: 'turn-end'; readonly turn: number; readonly message: AssistantMessage }
  | StopEvent
  | { readonly type: 'steer-delivered'; readonly message: UserMessage }
  /** The history was made shorter; `messages` is what it is now. */
  | {
      readonly type: 'history-compacted';
      readonly before: number;
      readonly after: number;
      readonly messages: readonly Message[];
    }
  /** Something that is no call was still running when the wait for it was over. */
  | { readonly type: 'work-abandoned'; readonly name: string }
  | { readonly type: 'undo-start'; readonly callId: string; readonly tool: string }
  | { readonly type: 'undo-end'; readonly callId: string; readonly tool: string; readonly state: UndoState }
  /** A reader was too slow and missed this many events; they are gone for it, not for the outcome. */
  | { readonly type: 'events-skipped'; readonly count: number }
  | { readonly type: 'run-end'; readonly outcome: Outcome };

/** Everything that happens in a run, in order. Nothing follows `run-end`, but for `AFTER_THE_END`. */
export type RunEvent = { readonly runId: string; readonly at: number } & (OwnEvent | TurnEvent | CallEvent);

/** An event as its author knows it, before it is stamped with run and time. */
export type UnstampedEvent = OwnEvent | TurnEvent | Unstamped<CallEvent>;

type Unstamped<Event> = Event extends unknown ? Omit<Event, 'at'> : never;

/** What can still happen when a run is over, and then only hooks hear of it. */
export const AFTER_THE_END: ReadonlySet<RunEvent['type']> = new Set([
  'call-late',
  'cleanup-error',
  'cancel-request',
  'undo-start',
  'undo-end',
]);
