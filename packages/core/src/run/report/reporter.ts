import type { StopLevel } from '../../stop/token/level.ts';
import type { CancelReason } from '../../stop/token/reason.ts';
import { deepFreeze } from '../../tool/normalize.ts';
import type { CallResult, CallState } from '../../tool/result.ts';
import type { RunEvent } from './events.ts';
import type { StoppedCall, StopReport } from './report.ts';

/** What is known about one call, in absolute time. */
interface SeenCall extends Omit<StoppedCall, 'afterMs' | 'wasWaitedFor'> {
  readonly at: number;
}

/** Where an event comes from: empty for the run itself; for a sub-agent, the calls that lead to it. */
interface CallPath {
  readonly ids: string;
  readonly tools: string;
}

const ROOT_PATH: CallPath = { ids: '', tools: '' };

/** Watches a run's events and writes the report. */
export class StopReporter {
  #cancelledAt: number | undefined;
  #reason: CancelReason | undefined;
  readonly #levels: { level: StopLevel; afterMs: number }[] = [];
  readonly #calls = new Map<string, SeenCall>();
  readonly #wasWaitedFor = new Set<string>();
  readonly #cleanupErrors: string[] = [];
  readonly #abandoned: { name: string; at: number }[] = [];
  /** How each call ended, including those that ended before the cancel. */
  readonly #states = new Map<string, CallState>();
  #reply: StopReport['reply'];
  #planner: StopReport['planner'];
  #characters = 0;

  observe(event: RunEvent): void {
    switch (event.type) {
      case 'level-changed':
        this.#cancelledAt ??= event.at;
        this.#reason ??= event.reason;
        this.#levels.push({ level: event.level, afterMs: this.#after(event.at) });
        break;
      case 'turn-start':
        this.#characters = 0;
        break;
      case 'text':
        this.#characters += event.text.length;
        break;
      case 'turn-end':
        if (event.message.stopReason === 'aborted') {
          this.#reply = { characters: this.#characters, afterMs: this.#after(event.at) };
        } else if (this.#cancelledAt !== undefined) this.#planner = { afterMs: this.#after(event.at) };
        break;
      default:
        this.#observeCall(event, ROOT_PATH);
        break;
    }
  }

  finish(settledAt: number, notUndone: NonNullable<StopReport['notUndone']> = []): StopReport {
    const calls = [...this.#calls.values()].map(({ at, ...call }) => ({
      ...call,
      afterMs: this.#after(at),
      wasWaitedFor: this.#wasWaitedFor.has(call.callId),
    }));
    const abandoned = this.#abandoned.map(({ name, at }) => ({ name, afterMs: this.#after(at) }));
    return deepFreeze({
      reason: this.#reason!,
      settledAfterMs: this.#after(settledAt),
      levels: this.#levels,
      ...(this.#reply && { reply: this.#reply }),
      ...(this.#planner && { planner: this.#planner }),
      calls,
      ...(notUndone.length > 0 && { notUndone }),
      cleanupErrors: this.#cleanupErrors,
      ...(abandoned.length > 0 && { abandoned }),
      isClean: this.#cleanupErrors.length === 0 && abandoned.length === 0 && calls.every(isClean),
    });
  }

  #observeCall(event: RunEvent, way: CallPath): void {
    switch (event.type) {
      case 'call-waiting':
        this.#wasWaitedFor.add(way.ids + event.callId);
        break;
      case 'call-end':
        this.#end(event.result, way);
        break;
      case 'call-ended-late':
        // A call that was abandoned before the cancel and has ended since does not belong in the report.
        if (this.#cancelledAt === undefined) this.#calls.delete(way.ids + event.callId);
        break;
      case 'call-event':
        try {
          this.#observeCall(event.event as RunEvent, {
            ids: `${way.ids}${event.callId}/`,
            tools: `${way.tools}${event.tool} › `,
          });
        } catch {
          // Any tool may nest, and its events may only look like ours.
        }
        break;
      case 'undo-end':
        this.#undone(event, way);
        break;
      case 'work-abandoned':
        this.#abandoned.push({ name: way.tools + event.name, at: event.at });
        break;
      case 'cleanup-error':
        this.#cleanupErrors.push(`${way.tools}${event.tool}: ${event.error.message}`);
        break;
      default:
        break;
    }
  }

  #end(result: CallResult, way: CallPath): void {
    const { tool, state, endedAt } = result;
    const callId = way.ids + result.callId;
    this.#states.set(callId, state);
    const { foundOut } = result;
    const known = { ...(foundOut && { foundOut: true as const }), ...findProcesses(result) };
    const call: SeenCall = { callId, tool: way.tools + tool, state, at: foundOut?.at ?? endedAt, ...known };
    // Of the calls that ended before the cancel, report only those that may still be running.
    if (this.#cancelledAt !== undefined || state === 'unknown' || call.survivors) this.#calls.set(callId, call);
  }

  #undone({ callId, tool, state, error, at }: RunEvent & { type: 'undo-end' }, way: CallPath): void {
    const id = way.ids + callId;
    const ended = this.#states.get(id) ?? 'finished';
    const call = this.#calls.get(id) ?? { callId: id, tool: way.tools + tool, state: ended, at };
    this.#calls.set(id, { ...call, undo: state, ...(error !== undefined && { undoError: error }) });
  }

  #after(at: number): number {
    const ms = at - this.#cancelledAt!;
    return Math.abs(ms) < 10 ? Math.round(ms * 10) / 10 : Math.round(ms);
  }
}

function isClean({ state, survivors = 0, unverified, undo = 'undone' }: StoppedCall): boolean {
  return state !== 'unknown' && survivors === 0 && unverified === undefined && undo === 'undone';
}

/** Tools that run processes report in `details.cleanup` what they ended, and whether that is proved. */
function findProcesses({ details }: CallResult): Pick<StoppedCall, 'processesEnded' | 'survivors' | 'unverified'> {
  if (typeof details !== 'object' || details === null || !('cleanup' in details)) return {};
  const cleanup = (details as { cleanup?: unknown }).cleanup as
    | { ended?: unknown; survivors?: unknown; verified?: unknown }
    | undefined;
  return {
    ...(typeof cleanup?.ended === 'number' && { processesEnded: cleanup.ended }),
    ...(typeof cleanup?.survivors === 'number' && { survivors: cleanup.survivors }),
    ...(cleanup?.verified === 'no' && { unverified: true }),
  };
}
