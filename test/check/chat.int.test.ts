// The kit on AI SDK chat routes: ours, a correct one, and a faulty one.
import { createChatAdapter } from '@whoa/check';
import { expect, test } from 'vitest';
import { forChange, isNight } from '../night.ts';
import { brokenServer } from './faulty-agents/servers.ts';
import { check, checksOf, findFailed, findProblems, TWO_INSTANCES } from './our-servers.ts';

const AT = 'http://127.0.0.1:{port}';
const ours = () => createChatAdapter({ ...TWO_INSTANCES, url: `${AT}/api/chat`, stopUrl: `${AT}/api/chat/{id}/stop` });
const tiny = (bug: string, stopUrl?: string) =>
  createChatAdapter({
    url: `${AT}/`,
    command: brokenServer('stream', 'chat', '{port}', bug),
    ...(stopUrl !== undefined && { stopUrl }),
  });

test('our chat passes every check of a stop', async () => {
  const report = await check(ours(), checksOf(['end', 'races', 'quiet', 'left-detached', 'next-turn', 'remote']));
  expect(findProblems(report)).toEqual([]);
  expect(report.counts.passed).toBeGreaterThan(isNight ? 31 : 14);
});

test.runIf(isNight)('our server leaves nothing when it is stopped or killed', async () => {
  const report = await check(ours(), ['exit-sigterm-busy', 'orphans-sigkill']);
  expect(findProblems(report)).toEqual([]);
  expect(report.counts.passed).toBe(2);
});

test.each(forChange([`${AT}/{id}/stop`, undefined], (stopUrl) => stopUrl !== undefined))(
  'a chat without a bug passes (stop: %s)',
  async (stopUrl) => {
    const report = await check(tiny('none', stopUrl), checksOf(['end', 'quiet']));
    expect(findProblems(report)).toEqual([]);
    expect(report.counts.passed).toBeGreaterThan(isNight ? 9 : 7);
  },
);

test('a chat that continues after the stop is caught by what its model and its tools do', async () => {
  const checks = ['cancel-streaming', 'model-stopped', 'late-effect'];
  expect(findFailed(await check(tiny('goes-on', `${AT}/{id}/stop`), checks, 1_500))).toEqual([
    'model-stopped',
    'late-effect',
  ]);
  // Without a stop route, the client closes its connection and sees no end, so all three checks fail.
  expect(findFailed(await check(tiny('goes-on'), checks, 1_500))).toEqual(checks);
});
