// The kit on MCP servers: ours over both transports, with and without MCP tasks, and one that ignores a cancel.
import { createMcpAdapter } from '@whoa/check';
import { expect, test } from 'vitest';
import { isNight } from '../night.ts';
import { brokenServer } from './faulty-agents/servers.ts';
import { check, checksOf, findFailed, findProblems, TWO_INSTANCES, whoaMcp } from './our-servers.ts';

const URL = 'http://127.0.0.1:{port}/mcp';

test('whoa mcp passes every check, with calls that are tasks', async () => {
  const ends = ['exit-eof-busy', 'exit-sigterm-busy', 'orphans-eof', 'orphans-sigkill'];
  const groups = ['end', 'races', 'quiet', 'left-detached', 'remote', ...ends];
  const report = await check(createMcpAdapter({ command: whoaMcp() }), checksOf(groups));
  expect(findProblems(report)).toEqual([]);
  expect(report.counts.passed).toBeGreaterThan(isNight ? 27 : 13);
});

test.runIf(isNight)('whoa mcp stops calls of hosts that know no tasks', async () => {
  const report = await check(createMcpAdapter({ command: whoaMcp(), tasks: false }), [
    'end',
    'same-chunk-prompt-first',
  ]);
  expect(findProblems(report)).toEqual([]);
  expect(report.counts.passed).toBeGreaterThan(6);
});

test.runIf(isNight)('whoa mcp runs nothing that was not allowed before the cancel', async () => {
  const report = await check(createMcpAdapter({ command: whoaMcp({ asks: true }) }), ['approval']);
  expect(findProblems(report)).toEqual([]);
  expect(report.counts.passed).toBe(3);
});

test.runIf(isNight)(
  'whoa serve stops tasks at /mcp, from any connection and instance, and across a crash',
  async () => {
    const report = await check(createMcpAdapter({ ...TWO_INSTANCES, url: URL }), checksOf(['end', 'quiet', 'remote']));
    expect(findProblems(report)).toEqual([]);
    expect(report.counts.passed).toBeGreaterThan(isNight ? 18 : 9);
  },
);

test.runIf(isNight)('whoa serve stops a call whose request is closed', async () => {
  const adapter = createMcpAdapter({ ...TWO_INSTANCES, url: URL, tasks: false });
  const report = await check(adapter, ['end', 'quiet']);
  expect(findProblems(report)).toEqual([]);
  expect(report.counts.passed).toBeGreaterThan(10);
});

test('a server without a bug passes', async () => {
  const adapter = createMcpAdapter({ command: brokenServer('mcp', 'none') });
  const report = await check(adapter, checksOf(['end', 'quiet']));
  expect(findProblems(report)).toEqual([]);
});

test('a server that ignores a cancel is caught by what its model and its tools do', async () => {
  const checks = ['cancel-streaming', 'same-chunk-prompt-first', 'model-stopped', 'late-effect'];
  const report = await check(createMcpAdapter({ command: brokenServer('mcp', 'ignores-cancel') }), checks, 1_500);
  expect(findFailed(report)).toEqual(checks);
});
