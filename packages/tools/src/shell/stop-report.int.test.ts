import { createAgent, formatStopReport, type Tool } from '@whoa/core';
import { callTools } from '@whoa/core/model';
import { expect, test } from 'vitest';
import { createContainment } from '../process/containment/create-containment.ts';
import { createBashTool } from './bash.ts';

const command = 'setsid sleep 309 & echo up; wait';
const planner = { next: () => callTools([{ id: '1', tool: 'bash', input: { command } }]) };

test.each(['now', 'kill'] as const)('a run that is stopped (%s) reports how many processes it ended', async (mode) => {
  await using containment = createContainment();
  const agent = createAgent({ name: 'coder', planner, tools: [createBashTool({ containment }) as unknown as Tool] });
  const run = agent.run('go', { hooks: { 'call-update': () => run.cancel({ kind: 'user' }, { mode }) } });
  const outcome = await run.outcome;
  if (outcome.status !== 'cancelled') throw new Error(`expected a cancelled run, got ${outcome.status}`);
  expect(outcome.stop).toMatchObject({
    isClean: true,
    calls: [{ state: 'interrupted', processesEnded: 2, survivors: 0 }],
  });
  expect(formatStopReport(outcome.stop)).toContain('bash interrupted, 2 processes ended');
});
