// Our own agent for editors passes every check that applies to it.
import { createAcpAdapter, createStage, runChecks } from '@whoa/check';
import { expect, test } from 'vitest';
import { BIN, createHome } from '../command/terminal.ts';

test('whoa acp passes every check that applies', async () => {
  using home = createHome();
  await using stage = await createStage();
  await using adapter = createAcpAdapter({ command: [...BIN, 'acp', '--sandbox', 'none'], env: home.env });
  // The machine of a test may be busy.
  const { results, counts } = await runChecks({ adapter, stage, settleMs: 10_000 });
  expect(results.filter(({ status }) => status === 'failed' || status === 'unclear')).toEqual([]);
  const without = results.filter(({ status }) => status === 'not-applicable').map(({ said }) => said);
  expect(new Set(without)).toEqual(new Set(['ACP has no tasks: only the connection that sent a prompt can cancel it']));
  expect(counts.passed).toBeGreaterThanOrEqual(54);
});
