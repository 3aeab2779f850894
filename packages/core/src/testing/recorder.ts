import type { RunEvent } from '../run/report/events.ts';
import type { Run } from '../run/run.ts';
import type { Hooks } from '../stop/hooks.ts';
import type { CancelReason } from '../stop/token/reason.ts';
import type { CancellationToken } from '../stop/token/token.ts';
import type { Tool, ToolContext } from '../tool/tool.ts';
import type { Effect, HistoryEntry } from './history.ts';

/** Records what every observer saw, for `checkHistory`. */
export interface Recorder {
  readonly history: readonly HistoryEntry[];
  /** Pass these to an agent. */
  readonly hooks: Hooks<RunEvent>;
  /** Returns the same tool, with its real effects recorded. */
  tool<Input>(tool: Tool<Input>): Tool<Input>;
  /** Returns the same run, with its outcome and receipts recorded. */
  run(run: Run): Run;
  /** Records the state of a token as an observer sees it now. */
  recordToken(token: CancellationToken): void;
}

/**
 * Creates a recorder of everything that happens to some agents and tools. `onEntry` is called with each new entry, for
 * example to save it where it outlives this process.
 *
 * @returns The recorder.
 */
export function createRecorder(
  options: { readonly onEntry?: ((entry: HistoryEntry) => void) | undefined } = {},
): Recorder {
  const history: HistoryEntry[] = [];
  const note = (entry: HistoryEntry): void => {
    history.push(entry);
    options.onEntry?.(entry);
  };
  return {
    history,
    // Copy: an observation must not change when the object changes later.
    hooks: {
      any: (event) => note({ seen: 'event', event: copyEvent(event) }),
    },
    tool: (tool) => recordingTool(tool, (effect) => note({ seen: 'effect', ...effect })),
    run: (run) => ({
      id: run.id,
      get text() {
        return run.text;
      },
      events: run.events,
      outcome: run.outcome.then((outcome) => {
        note({ seen: 'outcome', runId: run.id, outcome });
        return outcome;
      }),
      steer: (message, steerOptions) => run.steer(message, steerOptions),
      undo: () => run.undo(),
      [Symbol.asyncDispose]: () => run[Symbol.asyncDispose](),
      cancel(reason, options) {
        const receipt = run.cancel(reason, options);
        note({ seen: 'receipt', runId: run.id, receipt });
        return receipt;
      },
      cancelCall(callId, reason, options) {
        note({ seen: 'call-cancel', runId: run.id, callId });
        return run.cancelCall(callId, reason, options);
      },
    }),
    recordToken: (token) => note({ seen: 'leftovers', name: token.name, ...token.statistics }),
  };
}

function copyEvent(event: RunEvent): RunEvent {
  try {
    return structuredClone(event);
  } catch {
    // A parsed input may be anything, including values that cannot be cloned.
    return event;
  }
}

/** Wraps a tool so that it reports its real effects. */
function recordingTool<Input>(tool: Tool<Input>, record: (effect: Effect) => void): Tool<Input> {
  const recordPhases = async <T>(
    callId: string,
    phases: readonly Effect['phase'][],
    work: () => T,
  ): Promise<Awaited<T>> => {
    const [begin, resolve, reject] = phases as [Effect['phase'], Effect['phase'], Effect['phase']];
    record({ callId, tool: tool.name, phase: begin });
    try {
      const value = await work();
      record({ callId, tool: tool.name, phase: resolve });
      return value;
    } catch (error) {
      record({ callId, tool: tool.name, phase: reject });
      throw error;
    }
  };
  return {
    ...tool,
    async execute(input, context) {
      const { callId } = context;
      const watching =
        tool.whenCancelled === 'finish' &&
        watchForCut(context, () => record({ callId, tool: tool.name, phase: 'cut' }));
      try {
        return await recordPhases(callId, ['begin', 'resolve', 'reject'], () => tool.execute(input, context));
      } finally {
        if (watching) watching[Symbol.dispose]();
      }
    },
    ...('undo' in tool && {
      undo: (result, context) =>
        recordPhases(context.callId, ['undo-begin', 'undo-resolve', 'undo-reject'], () => tool.undo?.(result, context)),
    }),
  };
}

/** Only its own time limit may end a call that must finish. */
function watchForCut({ token }: ToolContext, onCut: () => void): Disposable {
  return token.onCancel((_level, { kind }: CancelReason) => {
    if (kind !== 'deadline') onCut();
  });
}
