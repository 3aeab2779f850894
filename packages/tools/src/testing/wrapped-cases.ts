import assert from 'node:assert/strict';
import type { CancellationToken, Tool } from '@whoa/core';
import type { CaseDefinition } from './harness.ts';
import { within } from './running-call.ts';

const SHORT = { abortMs: 50 };

/** Wraps the tool to misbehave, to test that the runtime copes. */
export const wrappedCases: readonly CaseDefinition[] = [
  {
    id: 'deaf',
    name: 'deaf to the cancel, it is abandoned when the ladder ends, and its late result changes nothing',
    async check(subject, stage) {
      const { timeoutMs } = stage;
      const hidden = stage.token('hidden');
      const { promise: released, resolve: release } = Promise.withResolvers<void>();
      const trial = await stage.startSlow(subject, deafened(subject.tool, { hidden, released }));
      trial.token.cancel({ kind: 'user' }, { mode: SHORT });
      const cleanupTimeoutMs = 2_000;
      const result = await within(
        SHORT.abortMs + cleanupTimeoutMs + timeoutMs,
        trial.result,
        'the call was not abandoned',
      );
      const before = JSON.stringify(result);
      assert.equal(result.state, 'unknown');
      assert.equal(trial.lateResults.entries().length, 1, 'it is not in the late results');
      hidden.cancel({ kind: 'user' }, { mode: 'now' });
      release();
      await within(timeoutMs, trial.toolSettled, 'the tool did not return');
      await new Promise((resolve) => setImmediate(resolve));
      assert.equal(JSON.stringify(await trial.result), before, 'the late end changed the result');
      assert.ok(trial.lateResults.entries()[0]?.late, 'the late end was not recorded');
    },
  },
  {
    id: 'throws-after-abort',
    name: 'throwing something of its own after the abort, it counts as interrupted and not as failed',
    async check(subject, stage) {
      const { timeoutMs } = stage;
      const trial = await stage.startSlow(subject, clumsy(subject.tool));
      trial.token.cancel({ kind: 'user' }, { mode: { abortMs: timeoutMs } });
      const result = await within(timeoutMs, trial.result, 'the call did not end');
      assert.equal(result.state, 'interrupted');
      assert.equal(result.reason?.kind, 'user');
    },
  },
];

/** The same tool, but it ignores cancels: it gets another token, and does not return before it is released. */
function deafened(tool: Tool, { hidden, released }: { hidden: CancellationToken; released: Promise<void> }): Tool {
  return {
    ...interruptible(tool),
    async execute(input, { callId, effectKey, update, emitNested }) {
      try {
        const own = { callId, effectKey, update, emitNested };
        return await tool.execute(input, { ...own, token: hidden, signal: hidden.signal, defer: () => undefined });
      } finally {
        await released;
      }
    },
  };
}

/** The same tool, but it stops and then throws an unrelated error. */
function clumsy(tool: Tool): Tool {
  return {
    ...interruptible(tool),
    async execute(input, context) {
      try {
        return await tool.execute(input, context);
      } catch (error) {
        throw new TypeError('it stumbled', { cause: error });
      }
    },
  };
}

function interruptible(tool: Tool): Tool {
  return { ...tool, whenCancelled: 'interrupt' };
}
