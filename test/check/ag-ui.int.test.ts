// The kit on AG-UI servers: ours, a correct one, and one that reports success after a stop.
import { createAgUiAdapter } from '@whoa/check';
import { expect, test } from 'vitest';
import { isNight } from '../night.ts';
import { brokenServer } from './faulty-agents/servers.ts';
import { check, checksOf, findFailed, findProblems, TWO_INSTANCES } from './our-servers.ts';

const AT = 'http://127.0.0.1:{port}';
const ours = () =>
  createAgUiAdapter({ ...TWO_INSTANCES, url: `${AT}/api/ag-ui`, stopUrl: `${AT}/api/ag-ui/{id}/stop` });
const tiny = (bug: string) =>
  createAgUiAdapter({
    url: `${AT}/`,
    stopUrl: `${AT}/{id}/stop`,
    command: brokenServer('stream', 'ag-ui', '{port}', bug),
  });

test('our AG-UI server passes every check of a stop', async () => {
  const report = await check(ours(), checksOf(['end', 'races', 'quiet', 'next-turn', 'remote']));
  expect(findProblems(report)).toEqual([]);
  expect(report.counts.passed).toBeGreaterThan(isNight ? 30 : 13);
});

test('a server without a bug passes', async () => {
  const report = await check(tiny('none'), checksOf(['end', 'quiet']));
  expect(findProblems(report)).toEqual([]);
});

test('a server that reports success after a stop is caught', async () => {
  const report = await check(tiny('says-success'), ['cancel-streaming', 'cancel-in-call', 'no-error-stream']);
  expect(findFailed(report)).toEqual(['cancel-streaming', 'cancel-in-call']);
  expect(report.results[0]?.detail).toContain('RUN_FINISHED, outcome success');
});
