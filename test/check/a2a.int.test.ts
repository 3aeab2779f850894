// The kit on A2A agents built with the official SDK: a well-behaved one, and one that writes CANCELED and keeps running.
import { createA2aAdapter } from '@whoa/check';
import { expect, test } from 'vitest';
import { isNight } from '../night.ts';
import { brokenServer } from './faulty-agents/servers.ts';
import { check, checksOf, findFailed } from './our-servers.ts';

const tiny = (bug: string) => {
  const command = brokenServer('a2a', '{port}', bug, '{folder}');
  return createA2aAdapter({ url: 'http://127.0.0.1:{port}', command, secondCommand: command });
};

test('an agent with the request handler of the SDK stops, except where another instance is asked', async () => {
  const report = await check(tiny('none'), checksOf(['end', 'races', 'quiet', 'remote']), 3_000);
  // The handler of an instance that does not run the task writes CANCELED into the store, and notifies no one.
  expect(findFailed(report)).toEqual(['cancel-at-b']);
  expect(report.counts.unclear).toBe(0);
  expect(report.counts.passed).toBeGreaterThan(isNight ? 22 : 9);
});

test('an agent that writes CANCELED and continues is caught by what its model and its tools do', async () => {
  const report = await check(tiny('goes-on'), ['cancel-streaming', 'model-stopped', 'late-effect'], 1_500);
  expect(findFailed(report)).toEqual(['model-stopped', 'late-effect']);
});
