import type { StopLevel } from '../stop/level.ts';
import type { CancelReason } from '../stop/reason.ts';
import type { CallResult } from '../tool/result.ts';
import type { RunEvent } from './events.ts';
import type { StoppedCall, StopReport, UndoState } from './report.ts';

/** Watches a run's events and writes the report. */
export class StopReporter {
  #cancelledAt: number | undefined;
  #reason: CancelReason | undefined;
  readonly #levels: { level: StopLevel; afterMs: number }[] = [];
  readonly #calls = new Map<string, StoppedCall>();
  readonly #waitedFor = new Set<string>();
  readonly #cleanupErrors: string[] = [];
  #reply: StopReport['reply'];
  #characters = 0;

  observe(event: RunEvent): void {
    switch (event.type) {
      case 'level-change':
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
        }
        break;
      case 'call-waiting':
        this.#waitedFor.add(event.callId);
        break;
      case 'call-end':
        if (this.#cancelledAt !== undefined) this.#calls.set(event.result.callId, this.#stopped(event.result));
        break;
      case 'undo-end':
        this.#undone(event.callId, event.tool, { state: event.state, at: event.at });
        break;
      case 'cleanup-error':
        this.#cleanupErrors.push(`${event.tool}: ${event.error.message}`);
        break;
      default:
        break;
    }
  }

  finish(settledAt: number): StopReport {
    const calls = [...this.#calls.values()];
    const clean =
      this.#cleanupErrors.length === 0 &&
      calls.every(
        (call) => call.state !== 'unknown' && (call.survivors ?? 0) === 0 && (call.undo ?? 'undone') === 'undone',
      );
    return deepFreeze({
      reason: this.#reason!,
      settledAfterMs: this.#after(settledAt),
      levels: this.#levels,
      ...(this.#reply && { reply: this.#reply }),
      calls,
      cleanupErrors: this.#cleanupErrors,
      clean,
    });
  }

  #after(at: number): number {
    const ms = at - this.#cancelledAt!;
    return Math.abs(ms) < 10 ? Math.round(ms * 10) / 10 : Math.round(ms);
  }

  #stopped(result: CallResult): StoppedCall {
    const { callId, tool, state } = result;
    const processes = cleanupOf(result);
    return {
      callId,
      tool,
      state,
      afterMs: this.#after(result.endedAt),
      waitedFor: this.#waitedFor.has(callId),
      ...processes,
    };
  }

  #undone(callId: string, tool: string, undo: { state: UndoState; at: number }): void {
    const call = this.#calls.get(callId) ?? {
      callId,
      tool,
      state: 'finished' as const,
      afterMs: this.#after(undo.at),
      waitedFor: false,
    };
    this.#calls.set(callId, { ...call, undo: undo.state });
  }
}

/** Tools that run processes say in `details.cleanup` what they ended. */
function cleanupOf({ details }: CallResult): Pick<StoppedCall, 'processesEnded' | 'survivors'> {
  if (typeof details !== 'object' || details === null || !('cleanup' in details)) return {};
  const cleanup = (details as { cleanup?: unknown }).cleanup as { ended?: number; survivors?: number } | undefined;
  return {
    ...(typeof cleanup?.ended === 'number' && { processesEnded: cleanup.ended }),
    ...(typeof cleanup?.survivors === 'number' && { survivors: cleanup.survivors }),
  };
}

function deepFreeze<T extends object>(value: T): T {
  for (const part of Object.values(value)) if (typeof part === 'object' && part !== null) deepFreeze(part);
  return Object.freeze(value);
}
