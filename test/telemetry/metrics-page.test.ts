// The page about telemetry and the dashboard name the metrics that exist, and all of them.
import { expect, test } from 'vitest';
import { METRICS, type MetricName, toPrometheusName } from '../../packages/server/src/observe/telemetry/metrics.ts';
import { read } from '../docs/pages.ts';

const names = Object.keys(METRICS) as MetricName[];

test('the page has a row for each metric, as the list describes it', () => {
  const rows = names.map((name) => {
    const { kind, labels, help } = METRICS[name];
    return `| \`${toPrometheusName(name)}\` | ${kind} | ${labels.join(', ')} | ${help} |`;
  });
  const written = read('docs/operations/telemetry.md')
    .split('\n')
    .filter((line) => line.startsWith('| `whoa_'));
  expect(written).toEqual(rows);
});

test('the dashboard shows each metric, and none that does not exist', () => {
  const { panels } = JSON.parse(read('deploy/grafana.json')) as { panels: { targets: { expr: string }[] }[] };
  const shown = panels.flatMap(({ targets }) => targets.flatMap(({ expr }) => expr.match(/whoa_\w+/g) ?? []));
  expect(new Set(shown.map((name) => name.replace(/_bucket$/, '')))).toEqual(new Set(names.map(toPrometheusName)));
});
