// Our own agent for editors passes every check that applies to it.
import { createAcpAdapter, createCheckHarness, GROUPS, runChecks } from '@whoa/check';
import { expect, test } from 'vitest';
import { BIN, createHome } from '../command/terminal.ts';
import { isNight } from '../night.ts';
import { checksOf } from './our-servers.ts';

test('whoa acp passes every check that applies', async () => {
  using home = createHome();
  await using harness = await createCheckHarness();
  await using adapter = createAcpAdapter({ command: [...BIN, 'acp', '--sandbox', 'none'], env: home.env });
  // Those that resist have their own test. The machine of a test may be busy.
  const only = checksOf(Object.keys(GROUPS).filter((group) => group !== 'resist'));
  const { results, counts } = await runChecks({ adapter, harness, only, settleMs: 10_000 });
  expect(results.filter(({ status }) => status === 'failed' || status === 'unclear')).toEqual([]);
  const without = results.filter(({ status }) => status === 'not-applicable').map(({ detail }) => detail);
  expect(new Set(without)).toEqual(new Set(['ACP has no tasks: only the connection that sent a prompt can cancel it']));
  expect(counts.passed).toBeGreaterThanOrEqual(isNight ? 54 : 22);
});

test('an agent without a shell is checked with the MCP server of the kit', async () => {
  const config = `import { createAgent } from 'whoa';
    export default { agents: { bare: async ({ model, approve, tools }) =>
      createAgent({ name: 'bare', model: await model(), approve, tools: tools.filter(({ name }) => name !== 'bash') }) } };`;
  using home = createHome({ 'config/whoa/whoa.config.mjs': config });
  await using harness = await createCheckHarness();
  const command = [...BIN, 'acp', '--sandbox', 'none', '--agent', 'bare'];
  await using adapter = createAcpAdapter({ command, env: home.env });
  const only = [
    'cancel-in-call',
    'unresponsive-tool',
    'late-effect',
    'next-keeps-finished',
    'question-late-yes',
    'left-root',
  ];
  const { results } = await runChecks({ adapter, harness, only, settleMs: 10_000 });
  expect(
    Object.fromEntries(results.map(({ id, status, detail }) => [id, status === 'passed' ? status : detail])),
  ).toEqual({
    'cancel-in-call': 'passed',
    'unresponsive-tool': 'passed',
    'late-effect': 'passed',
    'next-keeps-finished': 'passed',
    'question-late-yes': 'passed',
    'left-root': 'the probe runs in an MCP server, not in a shell of the agent',
  });
});
