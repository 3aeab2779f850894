import type { RunEvent } from '../run/events.ts';
import type { Outcome } from '../run/outcome.ts';
import type { Run } from '../run/run.ts';
import type { Hooks } from '../stop/hooks.ts';
import type { CancelReceipt } from '../stop/receipt.ts';
import type { CancellationToken } from '../stop/token.ts';
import type { Tool } from '../tool/tool.ts';

/** One thing that one observer saw. The order of entries is the order in which they were seen. */
export type HistoryEntry =
  | { readonly seen: 'event'; readonly event: RunEvent }
  | { readonly seen: 'receipt'; readonly runId: string; readonly receipt: CancelReceipt }
  /** The outcome itself, not a copy: it may not change after it was announced. */
  | { readonly seen: 'outcome'; readonly runId: string; readonly outcome: Outcome }
  /** What a tool really did, as told by the tool itself. */
  | { readonly seen: 'effect'; readonly callId: string; readonly phase: 'begin' | 'resolve' | 'reject' }
  | { readonly seen: 'call-cancel'; readonly runId: string; readonly callId: string }
  /** A look at a token that should have nothing under it any more. */
  | { readonly seen: 'leftovers'; readonly name: string; readonly children: number; readonly listeners: number };

/** Writes down what every observer saw, for `checkHistory` to judge. */
export interface Recorder {
  readonly history: readonly HistoryEntry[];
  /** Give these to an agent. */
  readonly hooks: Hooks<RunEvent>;
  /** The same tool; what it really does is written down. */
  tool<Input>(tool: Tool<Input>): Tool<Input>;
  /** The same run; its outcome and the receipts it gives are written down. */
  run(run: Run): Run;
  look(token: CancellationToken): void;
}

export function createRecorder(): Recorder {
  const history: HistoryEntry[] = [];
  return {
    history,
    // A copy: what was seen must not change when somebody changes the thing itself.
    hooks: {
      any: (event) => history.push({ seen: 'event', event: structuredClone(event) }),
    },
    tool: (tool) => ({
      ...tool,
      async execute(input, context) {
        const { callId } = context;
        history.push({ seen: 'effect', callId, phase: 'begin' });
        try {
          const result = await tool.execute(input, context);
          history.push({ seen: 'effect', callId, phase: 'resolve' });
          return result;
        } catch (error) {
          history.push({ seen: 'effect', callId, phase: 'reject' });
          throw error;
        }
      },
    }),
    run: (run) => ({
      id: run.id,
      get text() {
        return run.text;
      },
      events: run.events,
      outcome: run.outcome.then((outcome) => {
        history.push({ seen: 'outcome', runId: run.id, outcome });
        return outcome;
      }),
      steer: (message) => run.steer(message),
      undo: () => run.undo(),
      cancel(reason, options) {
        const receipt = run.cancel(reason, options);
        history.push({ seen: 'receipt', runId: run.id, receipt });
        return receipt;
      },
      cancelCall(callId, reason) {
        history.push({ seen: 'call-cancel', runId: run.id, callId });
        return run.cancelCall(callId, reason);
      },
    }),
    look: (token) => history.push({ seen: 'leftovers', name: token.name, ...token.statistics }),
  };
}
