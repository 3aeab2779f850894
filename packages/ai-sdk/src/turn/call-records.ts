import type { CancelReason } from '@whoa/core';
import { type CallState, type LateResults, systemWorld } from '@whoa/core/embed';
import { type AiSdkMessage, type CallTrace, fingerprint, isSameWork, positionAfter } from './call-sites.ts';

/** What is known about one call of a guarded tool. */
export interface CallRecord {
  /** Our own id, unique in these records. */
  readonly callId: string;
  /** The loop's id. Providers sometimes restart their counters in each reply, so several calls may share it. */
  readonly toolCallId: string;
  /** The id that `closeOpenCalls` gave it, if the loop's was not valid. */
  readonly renamedTo?: string;
  readonly tool: string;
  /** The idempotency key of its effect, which its `execute` gets as `options.effectKey`. */
  readonly effectKey: string;
  readonly state: 'running' | CallState;
  /** Its return value, if it `finished`. */
  readonly output?: unknown;
  /** The error it threw, if it `failed` or was interrupted. */
  readonly error?: unknown;
  /** Why it was stopped, if it was. */
  readonly reason?: CancelReason;
  /** How it ended after it was abandoned. */
  readonly late?: Parameters<LateResults['returned']>[1];
  readonly trace: CallTrace;
}

/** A call as its loop describes it. */
interface NewCall {
  readonly toolCallId: string;
  readonly tool: string;
  readonly input?: unknown;
  /** The messages before the reply with this call. */
  readonly messages?: readonly AiSdkMessage[] | undefined;
  /** Used instead of `input` and `messages`, where it is known. */
  readonly trace?: CallTrace;
}

/** Records every call of guarded tools, including those that the loop has forgotten. Create one per conversation. */
export interface CallRecords {
  /** Declares that every call of this tool is recorded here. */
  addTool(tool: string): void;
  /** Whether calls of a tool are recorded. */
  hasTool(tool: string): boolean;
  /** Records a call before it starts. */
  begin(call: NewCall): CallRecord;
  /** Updates a call's record, and returns it. */
  update(callId: string, change: Partial<Omit<CallRecord, 'callId'>>): CallRecord | undefined;
  /** Returns the latest call with this loop id. */
  find(toolCallId: string): CallRecord | undefined;
  /** Returns all calls, the oldest first. */
  records(): readonly CallRecord[];
  /**
   * Resolves when no call is running: each has ended or was abandoned. After a cancel that is at the latest when the
   * ladder ends and the last `finish` call has used up its time.
   */
  waitForIdle(): Promise<void>;
}

/**
 * Creates records in memory. When they are full, the oldest records of ended calls are dropped first.
 *
 * @returns The records to pass to `createStoppableTurn`, `guardAiSdkTools` and `closeOpenCalls`.
 */
export function createCallRecords(options: { maxRecords?: number | undefined } = {}): CallRecords {
  const { maxRecords = 1_000 } = options;
  const tools = new Set<string>();
  const records = new Map<string, CallRecord>();
  const waiting = new Set<() => void>();
  const running = new Set<string>();
  const replies = new WeakMap<object, CallRecord[]>();
  let started = 0;

  function dropOldest(): void {
    for (const callId of records.keys()) {
      if (records.size <= maxRecords) return;
      if (!running.has(callId)) records.delete(callId);
    }
  }

  function write(record: CallRecord): CallRecord {
    records.set(record.callId, record);
    if (record.state === 'running') running.add(record.callId);
    else running.delete(record.callId);
    dropOldest();
    if (running.size > 0) return record;
    for (const resolve of waiting) resolve();
    waiting.clear();
    return record;
  }

  /** A loop passes the same list of messages to all calls of one reply. */
  function toTrace({ toolCallId, tool, input: given, messages }: NewCall): CallTrace {
    const input = fingerprint(given);
    if (messages === undefined) return { input, position: undefined, occurrence: 0 };
    const siblings = replies.get(messages) ?? [];
    const isTwin = (one: CallRecord): boolean =>
      one.toolCallId === toolCallId && isSameWork({ tool: one.tool, input: one.trace.input }, { tool, input });
    return { input, position: positionAfter(messages), occurrence: siblings.filter(isTwin).length };
  }

  return {
    addTool: (tool) => void tools.add(tool),
    hasTool: (tool) => tools.has(tool),
    begin(call) {
      const { toolCallId, tool, messages, trace = toTrace(call) } = call;
      const effectKey = systemWorld.createId();
      const callId = `call-${++started}`;
      const record: CallRecord = { callId, toolCallId, tool, effectKey, state: 'running', trace };
      if (messages !== undefined) replies.set(messages, [...(replies.get(messages) ?? []), record]);
      return write(record);
    },
    update(callId, change) {
      const record = records.get(callId);
      return record === undefined ? undefined : write({ ...record, ...change });
    },
    find: (toolCallId) => [...records.values()].findLast((one) => [one.toolCallId, one.renamedTo].includes(toolCallId)),
    records: () => [...records.values()],
    waitForIdle: () => (running.size === 0 ? Promise.resolve() : new Promise((resolve) => waiting.add(resolve))),
  };
}
