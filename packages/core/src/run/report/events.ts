import type { StopEvent } from '../../stop/stop-events.ts';
import type { UndoState } from '../../tool/call/nested.ts';
import type { CallEvent } from '../../tool/events.ts';
import type { RaisableLimit } from '../budget-question.ts';
import type { AssistantMessage, Message, UserMessage } from '../history/message.ts';
import type { Spending } from '../spending/account.ts';
import type { Outcome } from './outcome.ts';

/** Events while a reply is created. */
export type TurnEvent =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'thinking'; readonly text: string }
  /** The model has started to request a call. The call runs only if the request is completed. */
  | { readonly type: 'call-planned'; readonly callId: string; readonly tool: string }
  | { readonly type: 'turn-retry'; readonly attempt: number; readonly delayMs: number; readonly error: string };

type OwnEvent =
  /** Without an input, the run continues with calls that were not started. */
  | { readonly type: 'run-start'; readonly agent: string; readonly input?: UserMessage }
  | { readonly type: 'turn-start'; readonly turn: number }
  | { readonly type: 'turn-end'; readonly turn: number; readonly message: AssistantMessage }
  | StopEvent
  | { readonly type: 'steer-delivered'; readonly message: UserMessage }
  /** What the run has spent has changed, or what its requests in progress may cost. Only with `budgets.usd`. */
  | ({ readonly type: 'spending' } & Spending)
  /** A limit was reached, and a person is asked for more. */
  | { readonly type: 'budget-asked'; readonly limit: RaisableLimit; readonly text: string }
  /** `more` is 0 for no. */
  | { readonly type: 'budget-answered'; readonly limit: RaisableLimit; readonly more: number }
  /** The history was shortened; `messages` is the new history. */
  | {
      readonly type: 'history-compacted';
      readonly before: number;
      readonly after: number;
      readonly messages: readonly Message[];
    }
  /** Work other than a call was still running when the wait for it ended. */
  | { readonly type: 'work-abandoned'; readonly name: string }
  | { readonly type: 'undo-start'; readonly callId: string; readonly tool: string }
  | {
      readonly type: 'undo-end';
      readonly callId: string;
      readonly tool: string;
      readonly state: UndoState;
      /** Why it failed. */
      readonly error?: string;
    }
  /** A reader was too slow and missed this many events. The outcome is still complete. */
  | { readonly type: 'events-skipped'; readonly count: number }
  | { readonly type: 'run-end'; readonly outcome: Outcome };

/** All events of a run, in order. Only the types in `AFTER_THE_END` can follow `run-end`. */
export type RunEvent = { readonly runId: string; readonly at: number } & (OwnEvent | TurnEvent | CallEvent);

/** An event before it gets its run id and time. */
export type UnstampedEvent = OwnEvent | TurnEvent | Unstamped<CallEvent>;

type Unstamped<Event> = Event extends unknown ? Omit<Event, 'at'> : never;

/** Events that can follow the end of a run. Only hooks receive them. */
export const AFTER_THE_END: ReadonlySet<RunEvent['type']> = new Set([
  'call-ended-late',
  'cleanup-error',
  'cancel-requested',
  'undo-start',
  'undo-end',
]);
