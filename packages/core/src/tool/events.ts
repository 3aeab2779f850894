import type { StopEvent } from '../stop/stop-events.ts';
import type { StopLevel } from '../stop/token/level.ts';
import type { CancelReason } from '../stop/token/reason.ts';
import type { LateEnd } from '../stop/work/ledger.ts';
import type { CallResult, Effects, ToolResult } from './result.ts';

/** What happens to calls, as told to hooks. */
export type CallEvent = { readonly at: number } & (
  | { readonly type: 'wave-start'; readonly wave: number; readonly callIds: readonly string[] }
  | { readonly type: 'wave-end'; readonly wave: number }
  | { readonly type: 'call-start'; readonly callId: string; readonly tool: string; readonly input: unknown }
  | { readonly type: 'call-update'; readonly callId: string; readonly tool: string; readonly partial: ToolResult }
  /** Something happened inside a call that is a run of its own: `event` is one of that run's events. */
  | {
      readonly type: 'call-nested';
      readonly callId: string;
      readonly tool: string;
      readonly event: { readonly type: string };
    }
  /** A person is asked whether the call may run. */
  | { readonly type: 'approval-request'; readonly callId: string; readonly tool: string; readonly effects: Effects }
  | { readonly type: 'approval-answer'; readonly callId: string; readonly tool: string; readonly approved: boolean }
  /** A warning: a cancel has to wait for this call, because it must not be cut in half. */
  | {
      readonly type: 'call-waiting';
      readonly callId: string;
      readonly tool: string;
      readonly level: StopLevel;
      readonly reason: CancelReason;
      /** Until when at the latest. */
      readonly until: number;
    }
  | { readonly type: 'call-end'; readonly result: CallResult }
  /** An abandoned call came back. Nothing but this event and the ledger changes. */
  | { readonly type: 'call-late'; readonly callId: string; readonly tool: string; readonly late: LateEnd }
  | { readonly type: 'cleanup-error'; readonly callId: string; readonly tool: string; readonly error: Error }
);

/** What happens in a runtime of its own: to its calls, and to what asked it to stop. */
export type RuntimeEvent = CallEvent | (StopEvent & { readonly at: number });
