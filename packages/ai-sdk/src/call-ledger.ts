import type { CallState, CancelReason, LateEnd } from '@whoa/core';

/** What is known of one call of a guarded tool. */
export interface CallRecord {
  readonly callId: string;
  readonly tool: string;
  readonly state: 'running' | CallState;
  /** What it returned, if it `finished`. */
  readonly output?: unknown;
  /** What it threw, if it `failed`. */
  readonly error?: unknown;
  /** Why it was stopped, if it was. */
  readonly reason?: CancelReason;
  /** How it ended after all, when it was given up on before. */
  readonly late?: LateEnd;
}

/** Keeps book of every call of guarded tools, also of those whose loop has forgotten them. */
export interface CallLedger {
  /** Says that every call of this tool is written down here. */
  addTool(tool: string): void;
  hasTool(tool: string): boolean;
  write(record: CallRecord): void;
  find(callId: string): CallRecord | undefined;
  records(): readonly CallRecord[];
  /**
   * Resolves when no call is running any more: each has ended or was given up on. After a cancel that is at the latest
   * when the ladder ends and the last `finish` call has used up its time.
   */
  waitForQuiet(): Promise<void>;
}

/** A ledger in memory. The oldest records of calls that have ended make room first. */
export function createCallLedger(options: { recordsMax?: number } = {}): CallLedger {
  const { recordsMax = 1_000 } = options;
  const tools = new Set<string>();
  const records = new Map<string, CallRecord>();
  const waiting = new Set<() => void>();
  const running = new Set<string>();

  function makeRoom(): void {
    for (const callId of records.keys()) {
      if (records.size <= recordsMax) return;
      if (!running.has(callId)) records.delete(callId);
    }
  }

  return {
    addTool: (tool) => void tools.add(tool),
    hasTool: (tool) => tools.has(tool),
    write(record) {
      records.set(record.callId, record);
      if (record.state === 'running') running.add(record.callId);
      else running.delete(record.callId);
      if (records.size > recordsMax) makeRoom();
      if (running.size > 0) return;
      for (const resolve of waiting) resolve();
      waiting.clear();
    },
    find: (callId) => records.get(callId),
    records: () => [...records.values()],
    waitForQuiet: () => (running.size === 0 ? Promise.resolve() : new Promise((resolve) => waiting.add(resolve))),
  };
}
