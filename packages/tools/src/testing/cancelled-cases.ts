import assert from 'node:assert/strict';
import type { CancellationToken, Tool, ToolContext } from '@whoa/core';
import type { CaseDefinition } from './harness.ts';
import { assertStopped, getBound, within } from './running-call.ts';

/** Cancels a tool at every possible moment. */
export const cancelledCases: readonly CaseDefinition[] = [
  {
    id: 'cancelled-before-start',
    name: 'cancelled before it starts, it never begins',
    async check({ tool, input }, stage) {
      const parent = stage.token('cancelled before');
      parent.cancel({ kind: 'user' });
      const trial = stage.start(tool, input, parent);
      assert.equal((await trial.result).state, 'not-started');
      assert.equal(trial.began(), false);
    },
  },
  {
    id: 'started-too-late',
    name: 'started under a token that is cancelled already, it ends at once',
    async check({ tool, slow }, stage) {
      const { timeoutMs } = stage;
      const token = stage.token('cancelled already');
      token.cancel({ kind: 'user' }, { mode: 'now' });
      const input = await parse(tool.inputSchema, slow.input);
      const { context, tidy } = bareContext(token);
      const ended = Promise.resolve(tool.execute(input, context)).catch(() => undefined);
      await within(getBound(tool, timeoutMs), ended, 'it did not end');
      await tidy();
    },
  },
  {
    id: 'cancelled-in-the-same-tick',
    name: 'cancelled in the tick in which it begins, it stops like at any other time',
    async check({ tool, slow }, stage) {
      const { timeoutMs } = stage;
      const cancelled: Tool = {
        ...tool,
        execute(input, context) {
          const running = tool.execute(input, context);
          trial.token.cancel({ kind: 'user' }, { mode: { abortMs: timeoutMs } });
          return running;
        },
      };
      const trial = stage.start(cancelled, slow.input);
      const result = await within(getBound(tool, timeoutMs), trial.result, 'the call did not end');
      if (result.state !== 'finished') assertStopped(tool, result, trial);
    },
  },
  {
    id: 'cancelled-mid-way',
    name: 'cancelled mid-way, it stops within the bound and says so',
    async check(subject, stage) {
      const { timeoutMs } = stage;
      const trial = await stage.startSlow(subject);
      trial.token.cancel({ kind: 'superseded' }, { mode: { abortMs: getBound(subject.tool, timeoutMs) } });
      const result = await within(getBound(subject.tool, timeoutMs), trial.result, 'the call did not end');
      assertStopped(subject.tool, result, trial);
      if (result.state === 'interrupted') assert.equal(result.reason, trial.token.reason);
    },
  },
  {
    id: 'cancelled-twice',
    name: 'cancelled twice, it has one result and the first reason',
    async check(subject, stage) {
      const { timeoutMs } = stage;
      const trial = await stage.startSlow(subject);
      const mode = { abortMs: getBound(subject.tool, timeoutMs) };
      trial.token.cancel({ kind: 'user', message: 'first' }, { mode });
      trial.token.cancel({ kind: 'deadline', message: 'second' }, { mode });
      const result = await within(getBound(subject.tool, timeoutMs), trial.result, 'the call did not end');
      assertStopped(subject.tool, result, trial);
      if (result.reason !== undefined) assert.equal(result.reason.message, 'first');
      assert.equal(trial.events.filter(({ type }) => type === 'call-end').length, 1);
    },
  },
  {
    id: 'cancelled-after-the-end',
    name: 'cancelled after the end, nothing changes',
    async check({ tool, input }, stage) {
      const trial = stage.start(tool, input);
      const result = await trial.result;
      const before = JSON.stringify(result);
      const events = trial.events.length;
      trial.token.cancel({ kind: 'user' }, { mode: 'kill' });
      await new Promise((resolve) => setImmediate(resolve));
      assert.equal(result.state, 'finished');
      assert.equal(JSON.stringify(await trial.result), before);
      assert.equal(trial.events.length, events, 'it spoke after the end');
    },
  },
  {
    id: 'killed-mid-way',
    name: 'killed mid-way: it is not waited for, and it returns by itself within the limit',
    async check(subject, stage) {
      const { timeoutMs } = stage;
      const trial = await stage.startSlow(subject);
      trial.token.cancel({ kind: 'shutdown' }, { mode: 'kill' });
      const bound = getBound(subject.tool, timeoutMs);
      const result = await within(bound, trial.result, 'the call did not end');
      const allowed = subject.tool.whenCancelled === 'finish' ? ['finished', 'unknown'] : ['interrupted', 'unknown'];
      assert.ok(allowed.includes(result.state), `it ended '${result.state}'`);
      await within(bound, trial.toolSettled, 'the tool did not return');
    },
  },
];

async function parse(schema: Tool['inputSchema'], value: unknown): Promise<unknown> {
  const parsed = await schema['~standard'].validate(value);
  assert.ok(parsed.issues === undefined, 'the input of the slow call does not fit the tool');
  return parsed.value;
}

function bareContext(token: CancellationToken): { context: ToolContext; tidy: () => Promise<void> } {
  const cleanups: Parameters<ToolContext['defer']>[0][] = [];
  const context: ToolContext = {
    token,
    signal: token.signal,
    callId: 'trial',
    effectKey: 'trial',
    update: () => undefined,
    emitNested: () => undefined,
    defer: (cleanup) => cleanups.push(cleanup),
  };
  const tidy = async (): Promise<void> => {
    for (const cleanup of cleanups.reverse()) await cleanup({ signal: AbortSignal.abort() });
  };
  return { context, tidy };
}
