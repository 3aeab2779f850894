// The alert rules name metrics that exist, lead to a paragraph each, fire on their fault, and are quiet through a deploy.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { METRICS, type MetricName, toPrometheusName } from '../../packages/server/src/observe/telemetry/metrics.ts';
import { ROOT, read } from '../docs/pages.ts';

const rules = read('deploy/alerts.yaml');

test('every alert names metrics that exist, and links to its paragraph', () => {
  const exposed = new Set((Object.keys(METRICS) as MetricName[]).map(toPrometheusName));
  const named = [...rules.matchAll(/whoa_\w+/g)].map(([name]) => name.replace(/_bucket$/, ''));
  expect(named.filter((name) => !exposed.has(name))).toEqual([]);
  const anchors = [...rules.matchAll(/on-call\.md#([\w-]+)/g)].map(([, anchor]) => anchor!);
  expect(anchors).toHaveLength(rules.match(/alert:/g)!.length);
  const headings = read('docs/operations/on-call.md').match(/^## .+$/gm)!;
  const known = new Set(
    headings.map((line) =>
      line
        .slice(3)
        .toLowerCase()
        .replace(/[^\w ]/g, '')
        .replaceAll(' ', '-'),
    ),
  );
  expect(anchors.filter((anchor) => !known.has(anchor))).toEqual([]);
  expect(read('docs/operations/on-call.md').split(/\s+/).length).toBeLessThanOrEqual(700);
});

const hasPromtool = spawnSync('promtool', ['--version']).error === undefined;

test.skipIf(!hasPromtool)('every alert fires on its fault, and none through a deploy or an ordinary day', () => {
  const { stdout, stderr, status } = spawnSync('promtool', ['test', 'rules', 'test/telemetry/alerts.yaml'], {
    cwd: join(ROOT),
    encoding: 'utf8',
  });
  expect(status, `${stdout}${stderr}`).toBe(0);
});
