import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import type { CancellationToken } from '@whoa/core';
import type { CaseDefinition, Stage } from './harness.ts';
import { listResources, waitForNoNewResources } from './resources.ts';
import { getBound, within } from './running-call.ts';
import type { ToolUnderTest } from './subject.ts';

const REPEATS = 5;
const QUIET_MS = 2_000;

/** A tool that is not cancelled, and the resources that any tool leaves behind. */
export const orderlyCases: readonly CaseDefinition[] = [
  {
    id: 'finishes',
    name: 'left alone it finishes, and its details are plain data',
    async check({ tool, input }, stage) {
      const trial = stage.start(tool, input);
      const result = await trial.result;
      assert.equal(result.state, 'finished', `it ended '${result.state}': ${JSON.stringify(result.content)}`);
      assert.equal(trial.events.filter(({ type }) => type === 'call-end').length, 1);
      if (result.details !== undefined) assert.deepEqual(JSON.parse(JSON.stringify(result.details)), result.details);
    },
  },
  {
    id: 'refuses-what-it-cannot-read',
    name: 'an input of the wrong shape never reaches it',
    async check({ tool }, stage) {
      const trial = stage.start(tool, null);
      const result = await trial.result;
      assert.equal(result.state, 'not-started');
      assert.equal(trial.began(), false);
    },
  },
  {
    id: 'leaves-nothing',
    name: 'finished, failed, cancelled and killed, it leaves no timer, listener, descriptor, process or file',
    async check(subject, stage) {
      // Run once before counting: the first use may load libraries and open resources that are kept.
      await useInEveryWay(subject, stage);
      const before = listResources();
      const parent = stage.token('long-lived');
      const { signal } = parent;
      for (let round = 0; round < REPEATS; round++) await useInEveryWay(subject, stage, parent);
      assert.deepEqual(parent.statistics, { children: 0, listeners: 0 }, 'something still hangs on the token');
      assert.equal(getEventListeners(signal, 'abort').length, 0, 'abort listeners are left on the signal');
      assert.deepEqual(await waitForNoNewResources(before, QUIET_MS), [], 'something is left');
      assert.deepEqual((await subject.leftovers?.()) ?? [], [], 'something is left in the outside world');
    },
  },
];

async function useInEveryWay(subject: ToolUnderTest, stage: Stage, parent?: CancellationToken): Promise<void> {
  const { tool, input } = subject;
  const bound = getBound(tool, stage.timeoutMs);
  for (const given of [input, null]) {
    const trial = stage.start(tool, given, parent);
    await trial.result;
    trial[Symbol.dispose]();
  }
  for (const mode of ['now', 'kill'] as const) {
    const trial = await stage.startSlow(subject, tool, parent);
    trial.token.cancel({ kind: 'user' }, { mode });
    await within(bound, trial.result, 'the call did not end');
    await within(bound, trial.toolSettled, 'the tool did not return');
    trial[Symbol.dispose]();
  }
}
