import type { LateResult } from '../stop/bounded/late-results.ts';
import type { StopEvent } from '../stop/stop-events.ts';
import type { StopLevel } from '../stop/token/level.ts';
import type { CancelReason } from '../stop/token/reason.ts';
import type { CallResult, Effects, ToolResult } from './result.ts';

/** Events of calls, as hooks receive them. */
export type CallEvent = { readonly at: number } & (
  | { readonly type: 'wave-start'; readonly wave: number; readonly callIds: readonly string[] }
  | { readonly type: 'wave-end'; readonly wave: number }
  | { readonly type: 'call-start'; readonly callId: string; readonly tool: string; readonly input: unknown }
  | { readonly type: 'call-update'; readonly callId: string; readonly tool: string; readonly partial: ToolResult }
  /** An event of a run inside this call: `event` is one of that run's events. */
  | {
      readonly type: 'call-event';
      readonly callId: string;
      readonly tool: string;
      readonly event: { readonly type: string };
    }
  /** A user is asked whether the call may run. */
  | { readonly type: 'approval-requested'; readonly callId: string; readonly tool: string; readonly effects: Effects }
  | { readonly type: 'approval-answered'; readonly callId: string; readonly tool: string; readonly approved: boolean }
  /** A warning: a cancel has to wait for this call, because it must not be interrupted. */
  | {
      readonly type: 'call-waiting';
      readonly callId: string;
      readonly tool: string;
      readonly level: StopLevel;
      readonly reason: CancelReason;
      /** The latest time the wait can end. */
      readonly until: number;
    }
  | { readonly type: 'call-end'; readonly result: CallResult }
  /** An abandoned call ended after all. Only this event and the late results change. */
  | { readonly type: 'call-ended-late'; readonly callId: string; readonly tool: string; readonly late: LateResult }
  | { readonly type: 'cleanup-error'; readonly callId: string; readonly tool: string; readonly error: Error }
);

/** Events of a standalone runtime: of its calls, and of its cancels. */
export type RuntimeEvent = CallEvent | (StopEvent & { readonly at: number });
