import { DataPointType, MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics';
import { createMemoryStore } from '@whoa/tasks';
import { expect, test } from 'vitest';
import { readValue } from '../../../../../test/telemetry/read-value.ts';
import { Meter } from './meter.ts';
import { METRICS, type MetricName, toPrometheusName } from './metrics.ts';
import { createPrometheusMetrics } from './prometheus.ts';
import { createTelemetry } from './telemetry.ts';

const TASK = { tenant: 'acme', agent: 'assistant', input: 'hello' };
const LABELS: Readonly<Record<string, string>> = {
  agent: 'a',
  status: 's',
  answer: 'x',
  type: 't',
  result: 'r',
  kind: 'k',
  end: 'e',
  code: 'NO_ROOM',
  consumer: 'totals',
  operation: 'take',
};

const DEFAULT_BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** A reader of a user's own SDK. */
class OwnReader extends MetricReader {
  protected override onShutdown = (): Promise<void> => Promise.resolve();
  protected override onForceFlush = (): Promise<void> => Promise.resolve();
}

test('each metric of the list is exposed with its name, kind, labels and help', async () => {
  const { meterProvider, read } = await createPrometheusMetrics();
  const meter = new Meter([{ meter: meterProvider.getMeter('test'), isPrometheus: true }]);
  const expected = (Object.keys(METRICS) as MetricName[]).flatMap((name) => {
    const { kind, help, labels, bounds } = METRICS[name];
    const series = meter.series(name, ...labels.map((label) => LABELS[label]!));
    if (kind === 'histogram') series.time(2_000);
    else series.add(2);
    const exposed = toPrometheusName(name);
    const pairs = labels.map((label) => `${label}="${LABELS[label]}"`);
    const withLabels = (given: readonly string[]): string => (given.length === 0 ? '' : `{${given.join(',')}}`);
    const head = [`# HELP ${exposed} ${help}`, `# TYPE ${exposed} ${kind}`];
    if (kind !== 'histogram') return [...head, `${exposed}${withLabels(pairs)} 2`];
    const bucket = (le: string, count: number): string =>
      `${exposed}_bucket${withLabels([...pairs, `le="${le}"`])} ${count}`;
    return [
      ...head,
      `${exposed}_count${withLabels(pairs)} 1`,
      `${exposed}_sum${withLabels(pairs)} 2`,
      ...(bounds ?? DEFAULT_BOUNDS).map((le) => bucket(`${le}`, le < 2 ? 0 : 1)),
      bucket('+Inf', 1),
    ];
  });
  expect(await read()).toBe(`${expected.join('\n')}\n`);
});

test('counters start at 0, histograms and store gauges with their first value', async () => {
  const prometheus = await createPrometheusMetrics();
  createTelemetry({ prometheus });
  const text = await prometheus.read();
  expect([...text.matchAll(/^(whoa_.*) 0$/gm)].map(([, name]) => name)).toEqual([
    'whoa_task_running',
    'whoa_task_reclaimed_total',
    'whoa_work_abandoned_total',
    'whoa_work_late_total',
    'whoa_process_survivors_total',
    'whoa_journal_written_bytes_total',
  ]);
  expect(text).not.toMatch(/_bucket|whoa_ready|whoa_task_ended/);
});

test('the text is valid whatever agents are called, and their number is bounded', async () => {
  const prometheus = await createPrometheusMetrics();
  const telemetry = createTelemetry({ prometheus });
  const store = telemetry.observeStore(createMemoryStore());
  for (const agent of ['a"b\\c\nd', 'é\u{1f600}', 'x'.repeat(150)]) await store.create({ ...TASK, agent });
  for (let i = 0; i < 1_100; i++) {
    telemetry.count('whoa.webhook.attempts', `result ${i}`);
    // A scrape in between does not make room.
    if (i === 500) await prometheus.read();
  }
  const text = await prometheus.read();
  expect(readValue(text, 'whoa.task.created', '{agent="a\\"b\\\\c\\nd"}')).toBe(1);
  expect(readValue(text, 'whoa.webhook.attempts', '{result="other"}')).toBe(100);
  for (const line of text.trimEnd().split('\n'))
    expect(line).toMatch(/^(# (HELP|TYPE) whoa_\w+ .+|whoa_\w+(\{(\w+="([^"\\]|\\.)*",?)+\})? -?[\d.e+-]+)$/u);
  await store[Symbol.asyncDispose]();
});

test('a registered SDK and Prometheus have the same values, each by its own names', async () => {
  const prometheus = await createPrometheusMetrics();
  const reader = new OwnReader();
  const telemetry = createTelemetry({ prometheus, meterProvider: new MeterProvider({ readers: [reader] }) });
  const store = telemetry.observeStore(createMemoryStore());
  await store.create(TASK);
  expect(readValue(await prometheus.read(), 'whoa.task.created', '{agent="assistant"}')).toBe(1);
  const { resourceMetrics } = await reader.collect();
  const created = resourceMetrics.scopeMetrics[0]!.metrics.find(
    ({ descriptor }) => descriptor.name === 'whoa.task.created',
  );
  expect(created).toMatchObject({
    descriptor: { unit: '{task}' },
    dataPointType: DataPointType.SUM,
    dataPoints: [{ value: 1, attributes: { 'gen_ai.agent.name': 'assistant' } }],
  });
  await store[Symbol.asyncDispose]();
});

test('two servers in one process count apart, or together if they share their metrics', async () => {
  const [first, second] = [await createPrometheusMetrics(), await createPrometheusMetrics()];
  const [one, two, three] = [first, second, second].map((prometheus) => createTelemetry({ prometheus }));
  for (const telemetry of [one!, two!, three!]) telemetry.count('whoa.work.late');
  expect(readValue(await first.read(), 'whoa.work.late')).toBe(1);
  const text = await second.read();
  expect(readValue(text, 'whoa.work.late')).toBe(2);
  expect(text.match(/# TYPE whoa_work_late_total/g)).toHaveLength(1);
});

test('scrapes at the same time, during the end and after it read the same totals', async () => {
  const prometheus = await createPrometheusMetrics();
  const telemetry = createTelemetry({ prometheus });
  telemetry.count('whoa.work.late');
  const ending = telemetry[Symbol.asyncDispose]();
  const texts = await Promise.all([prometheus.read(), prometheus.read()]);
  await ending;
  texts.push(await prometheus.read());
  expect(texts.map((text) => readValue(text, 'whoa.work.late'))).toEqual([1, 1, 1]);
});
