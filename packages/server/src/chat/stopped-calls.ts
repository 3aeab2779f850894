import { type CallRecords, createCallRecords } from '@whoa/ai-sdk';
import type { CallRecord } from '@whoa/ai-sdk/internal';
import type { CancelReason, StopLevel, StopReport } from '@whoa/core';
import { describeError, describeStoppedCall } from '@whoa/core/internal';
import type { UIMessageChunk } from 'ai';
import { describeLate, type LateResult } from './answers.ts';

/** What a stop report says about a call. */
export type ClosedCall = Pick<CallRecord, 'callId' | 'toolCallId' | 'tool' | 'state'>;

interface Stop {
  readonly reason: CancelReason;
  readonly levels: readonly { readonly level: StopLevel; readonly at: number }[];
  readonly now: number;
}

export function reportStop(closed: readonly ClosedCall[], { reason, levels, now }: Stop): StopReport {
  // Clocks count fractions.
  const after = (at: number): number => Math.round(at - reason.at);
  const calls = closed.map(({ callId, toolCallId, tool, state }) => ({
    callId: toolCallId || callId,
    tool,
    state: state === 'running' ? ('unknown' as const) : state,
    afterMs: after(now),
    wasWaitedFor: false,
  }));
  return {
    reason,
    settledAfterMs: after(now),
    levels: levels.map(({ level, at }) => ({ level, afterMs: after(at) })),
    calls,
    cleanupErrors: [],
    isClean: calls.every(({ state }) => state !== 'unknown'),
  };
}

/** Returns the end of a call whose result the loop never streamed. */
export function findEnd(
  toolCallId: string,
  record: Partial<CallRecord> & Pick<CallRecord, 'state'>,
  reason: CancelReason | undefined,
): UIMessageChunk {
  if (record.state === 'finished') return { type: 'tool-output-available', toolCallId, output: record.output ?? null };
  if (record.state === 'failed')
    return { type: 'tool-output-error', toolCallId, errorText: describeError(record.error) };
  const state = record.state === 'running' ? 'unknown' : record.state;
  const why = record.reason ?? reason ?? { kind: 'the reply ended', at: 0 };
  return { type: 'tool-output-error', toolCallId, errorText: describeStoppedCall(state, why) };
}

/** Creates call records that also report how abandoned calls end. */
export function createWatchedRecords(onLate: (end: Omit<LateResult, 'late'>) => void): CallRecords {
  const records = createCallRecords();
  const update: CallRecords['update'] = (callId, change) => {
    const record = records.update(callId, change);
    const { late } = change;
    if (record !== undefined && late !== undefined) {
      const end = late.state === 'finished' ? { output: late.value } : { errorText: describeError(late.error) };
      onLate({ toolCallId: record.toolCallId, errorText: describeLate(end) });
    }
    return record;
  };
  return { ...records, update };
}
