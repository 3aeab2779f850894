import assert from 'node:assert/strict';
import { type CallResult, CancellationToken, createRuntime, isCancelledError, type Tool } from '@whoa/core';
import type { LateResults } from '@whoa/core/embed';
import type { RuntimeEvent } from '@whoa/core/internal';
import type { ToolUnderTest } from './subject.ts';

/** One running call. */
export interface RunningCall extends Disposable {
  readonly token: CancellationToken;
  readonly result: Promise<CallResult>;
  readonly events: readonly RuntimeEvent[];
  readonly lateResults: LateResults;
  /** Resolves when the tool's own function has settled, which may be after its call was abandoned. */
  readonly toolSettled: Promise<void>;
  /** Whether the tool's own function was called. */
  readonly began: () => boolean;
}

/** Starts one call of a tool in its own runtime. */
export function startTrial(tool: Tool, input: unknown, parent?: CancellationToken): RunningCall {
  const token = new CancellationToken({ name: 'trial', parent });
  const events: RuntimeEvent[] = [];
  const { promise: toolSettled, resolve: settled } = Promise.withResolvers<void>();
  let began = false;
  const watched: Tool = {
    ...tool,
    async execute(parsed, context) {
      began = true;
      try {
        return await tool.execute(parsed, context);
      } finally {
        settled();
      }
    },
  };
  const runtime = createRuntime({
    tools: [watched],
    hooks: { any: (event) => events.push(event) },
  });
  const result = runtime.execute([{ id: 'trial', tool: tool.name, input }], { token }).then(
    ([only]) => only!,
    (error: unknown) => {
      if (!isCancelledError(error)) throw error;
      return (error.partial as CallResult[])[0]!;
    },
  );
  return {
    token,
    result,
    events,
    lateResults: runtime.lateResults,
    toolSettled,
    began: () => began,
    [Symbol.dispose]: () => token[Symbol.dispose](),
  };
}

/** Starts the slow call and waits until it is busy. */
export async function startSlowTrial(
  subject: ToolUnderTest,
  tool: Tool = subject.tool,
  parent?: CancellationToken,
): Promise<RunningCall> {
  const trial = startTrial(tool, subject.slow.input, parent);
  // Without `whenBusy`, a few turns of the event loop bring any tool to its first wait.
  if (subject.slow.whenBusy) await within(10_000, subject.slow.whenBusy(), `${tool.name} did not get to work`);
  else for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
  assert.ok(trial.began(), `${tool.name}: the slow call did not begin`);
  return trial;
}

/** Waits for a promise, for at most `ms`. */
export async function within<T>(ms: number, promise: Promise<T>, otherwise: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new assert.AssertionError({ message: `${otherwise} within ${ms} ms` })), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Asserts that a tool stopped by itself: it was interrupted, or its effect is unknown. */
export function assertStopped(tool: Tool, { state }: CallResult, { lateResults }: RunningCall): void {
  assert.equal(lateResults.entries().length, 0, 'it did not stop and had to be abandoned');
  const allowed = tool.whenCancelled === 'finish' ? ['finished'] : ['interrupted', 'unknown'];
  assert.ok(allowed.includes(state), `it ended '${state}'`);
}

/** The time limit of the trial's cancel. */
export function getBound({ whenCancelled, timeoutMs: ownMs = 0 }: Tool, timeoutMs: number): number {
  return whenCancelled === 'finish' ? ownMs + timeoutMs : timeoutMs;
}
