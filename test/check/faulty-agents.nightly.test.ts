// The kit is worth something only if it catches agents that are wrong: each broken agent is caught by the checks that are there
// for its bug, and an agent that does all that one process can do passes.
import { join } from 'node:path';
import { type CheckReport, createAcpAdapter, createCheckHarness, runChecks } from '@whoa/check';
import { describe, expect, test } from 'vitest';
import { BUGS, type Bug, type Flawless } from './faulty-agents/bugs.ts';

const AGENT = join(import.meta.dirname, 'faulty-agents/agent.ts');
/** Checks that an agent cannot pass by itself: they need a supervisor. */
const BEYOND = [
  'left-detached',
  'resist-freeze-host',
  'resist-kill-host',
  'resist-new-session',
  'resist-respawn',
  'resist-ignore-term',
  'resist-hand-over',
  'orphans-eof',
  'orphans-sigterm',
  'orphans-sigkill',
];

async function check(bug: Bug | Flawless, only?: readonly string[]): Promise<CheckReport> {
  await using harness = await createCheckHarness();
  await using adapter = createAcpAdapter({
    command: [process.execPath, '--disable-warning=ExperimentalWarning', AGENT, bug],
  });
  return await runChecks({ adapter, harness, settleMs: 1_500, ...(only !== undefined && { only }) });
}

test('an agent without a bug passes all that one process can do', async () => {
  const { results } = await check('none');
  const failed = results.filter(({ status }) => status === 'failed' || status === 'unclear');
  expect(failed.filter(({ id }) => !BEYOND.includes(id))).toEqual([]);
  const found = failed.map(({ id }) => id);
  expect(BEYOND.filter((id) => id !== 'resist-hand-over' && !found.includes(id))).toEqual([]);
  expect(results.filter(({ status }) => status === 'passed').length).toBeGreaterThan(45);
});

test('an agent that does not know $/cancel_request is not blamed, because the protocol leaves it optional', async () => {
  const { results } = await check('no-cancel-request', ['cancel-request']);
  expect(results).toMatchObject([{ id: 'cancel-request', status: 'not-applicable' }]);
});

test('an agent that starts both calls of a reply at the same time is not blamed for the second', async () => {
  const { results } = await check('side-by-side', ['no-second-call']);
  expect(results).toMatchObject([{ status: 'passed', detail: 'it had started before the cancel' }]);
});

// In parallel: most of the time they wait for something that must not happen.
describe.concurrent('caught', () => {
  for (const [bug, { what, caughtBy }] of Object.entries(BUGS)) {
    test(`${bug}: an agent that ${what}`, async () => {
      const { results } = await check(bug as Bug, caughtBy);
      expect(results.map(({ id, status }) => [id, status])).toEqual(results.map(({ id }) => [id, 'failed']));
      expect(results).toHaveLength(caughtBy.length);
    });
  }
});
