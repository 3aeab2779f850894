import type { Change } from '../plant.ts';

/** Bugs that the exploration must find. Each is a change to the core's sources. */
export interface PlantedBug {
  readonly name: string;
  /** A promise the checker must name. */
  readonly breaks: string;
  readonly changes: readonly Change[];
}

export const plantedBugs: readonly PlantedBug[] = [
  {
    name: 'blind de-escalation',
    breaks: 'P3',
    changes: [
      { file: 'stop/token/token.ts', find: 'this.#rank = Math.max(this.#rank, rank);', replace: 'this.#rank = rank;' },
      {
        file: 'stop/token/token.ts',
        find: 'if (rank <= this.#rank && (!undo || this.#undo)) return false;',
        replace: '',
      },
      { file: 'stop/token/token.ts', find: 'if (stronger) {', replace: '{' },
    ],
  },
  {
    name: 'second reason wins',
    breaks: 'P7',
    changes: [
      { file: 'stop/token/token.ts', find: 'this.#reason ??= reason;', replace: 'this.#reason = reason;' },
      {
        file: 'stop/token/token.ts',
        find: 'reason: this.#reason ?? createReason(init, now)',
        replace: 'reason: createReason(init, now)',
      },
    ],
  },
  {
    name: 'listener kept',
    breaks: 'P11',
    changes: [{ file: 'stop/token/listeners.ts', find: 'this.#owner.remove(this);', replace: '' }],
  },
  {
    name: 'late result accepted',
    breaks: 'P1',
    changes: [
      {
        file: 'tool/call/live-call.ts',
        find: "emit?.({ type: 'call-ended-late', at: end.at, ...this.#about(), late: end });",
        replace: "emit?.({ type: 'call-end', at: end.at, result: { ...result, state: 'finished', content: 'late' } });",
      },
    ],
  },
  {
    name: 'call started after cancel',
    breaks: 'P4',
    // Checkpoints follow each other, so all of them must be removed.
    changes: [
      {
        file: 'stop/bounded/bounded.ts',
        find: 'if (token.isCancelled) return',
        replace: 'if (false as boolean) return',
      },
      { file: 'tool/runtime.ts', find: 'if (token.isCancelled) break;', replace: '' },
      { file: 'tool/runtime.ts', find: 'if (scope.token.isCancelled) return;', replace: '' },
      {
        file: 'stop/bounded/bounded.ts',
        find: 'const stop = own.reason ?? token.reason;',
        replace: 'const stop = undefined as typeof own.reason;',
      },
      { file: 'tool/call/start.ts', find: 'if (call.stopped) return call.endUnstarted();', replace: '' },
      {
        file: 'tool/call/start.ts',
        find: "prepared.by === 'value' && !call.stopped",
        replace: "prepared.by === 'value'",
      },
      { file: 'tool/call/start.ts', find: 'if (!call.stopped) return runBounded', replace: 'return runBounded' },
      {
        file: 'tool/call/start.ts',
        find: 'throwIfCancelled();\n  const { context }',
        replace: 'isCancelled;\n  const { context }',
      },
      {
        file: 'tool/call/start.ts',
        find: 'throwIfCancelled();\n  const isRequired',
        replace: 'isCancelled;\n  const isRequired',
      },
      { file: 'tool/call/start.ts', find: 'throwIfCancelled();\n  await', replace: 'isCancelled;\n  await' },
      {
        file: 'tool/call/start.ts',
        find: 'throwIfCancelled();\n  const asking',
        replace: 'isCancelled;\n  const asking',
      },
      {
        file: 'tool/call/start.ts',
        find: "waitUntilLevel(preparing, call.waiting, 'drain')",
        replace: "waitUntilLevel(preparing, call.waiting, 'kill')",
      },
    ],
  },
];
