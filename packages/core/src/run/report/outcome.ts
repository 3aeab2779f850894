import type { CancelReason } from '../../stop/token/reason.ts';
import type { CallResult } from '../../tool/result.ts';
import type { Message, Usage, UserMessage } from '../history/message.ts';
import type { Spending } from '../spending/account.ts';
import type { StopReport } from './report.ts';

interface OutcomeBase {
  readonly runId: string;
  readonly agent: string;
  /** The text of the last reply, complete or not, after those that a steering message followed. */
  readonly text: string;
  /** The history with everything this run added. It is a valid history for the next run, however this one ended. */
  readonly messages: readonly Message[];
  readonly calls: readonly CallResult[];
  readonly usage: Usage;
  /** What it cost, with `budgets.usd`. */
  readonly spending?: Spending;
  readonly turns: number;
  /** Messages passed to `steer` that the run did not read. */
  readonly undelivered: readonly UserMessage[];
  readonly startedAt: number;
  readonly endedAt: number;
}

/** How a run ended, with everything it produced. Frozen. */
export type Outcome = OutcomeBase &
  (
    | { readonly status: 'success' }
    | { readonly status: 'failed'; readonly error: unknown }
    | {
        readonly status: 'cancelled';
        readonly reason: CancelReason;
        readonly stop: StopReport;
        /** The work had finished or failed before the stop took effect. */
        readonly isComplete: boolean;
        readonly error?: unknown;
      }
  );
