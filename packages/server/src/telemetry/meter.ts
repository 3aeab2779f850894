import type { Attributes, Histogram, ObservableResult, Meter as OtelMeter } from '@opentelemetry/api';
import { METRICS, type MetricName, toPrometheusName } from './metrics.ts';

/** Upper bounds of the buckets, in seconds. */
const BOUNDS: readonly number[] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
/** More label values than this are counted under `other`: agent names can come from anywhere. */
const MAX_SERIES = 1_000;
const MAX_LABEL_CHARACTERS = 100;
const OTHER = 'other';

/** One metric with one set of labels. Keep it where it is used often. */
export class Series {
  readonly labels: readonly string[];
  readonly attributes: Attributes;
  /** The total, the current value, or the sum of a histogram. */
  value = 0;
  /** For a histogram: how many values fell into each bucket. The last one has no bound. */
  readonly buckets: number[];
  readonly #histogram: Histogram | undefined;

  constructor(name: MetricName, labels: readonly string[], histogram: Histogram | undefined) {
    this.labels = labels;
    this.attributes = attributesOf(name, labels);
    this.#histogram = histogram;
    this.buckets = histogram === undefined ? [] : Array<number>(BOUNDS.length + 1).fill(0);
  }

  add(amount = 1): void {
    this.value += amount;
  }

  set(value: number): void {
    this.value = value;
  }

  /** Records a time in milliseconds. Clocks of two machines can differ, so it may be negative: that counts as 0. */
  time(ms: number): void {
    const seconds = Math.max(0, ms) / 1_000;
    let bucket = 0;
    while (bucket < BOUNDS.length && seconds > BOUNDS[bucket]!) bucket++;
    this.value += seconds;
    this.buckets[bucket]! += 1;
    this.#histogram?.record(seconds, this.attributes);
  }
}

const NAMES = Object.keys(METRICS) as readonly MetricName[];

/** Counts in this process, for `/metrics`, and passes everything to OpenTelemetry. */
export class Meter implements Disposable {
  readonly #series = new Map<MetricName, Map<string, Series>>();
  readonly #histograms = new Map<MetricName, Histogram>();
  readonly #leave: (() => void)[] = [];

  constructor(meter: OtelMeter) {
    for (const name of NAMES) {
      this.#series.set(name, new Map());
      this.#offer(name, meter);
      // A counter that is missing until its first event looks like one that is never scraped. A gauge is not known yet.
      if (METRICS[name].labels.length === 0 && METRICS[name].kind !== 'gauge') this.series(name);
    }
  }

  /** Returns a metric with its labels. */
  series(name: MetricName, ...given: readonly string[]): Series {
    const all = this.#series.get(name)!;
    const known = all.get(given.join('\0'));
    if (known !== undefined) return known;
    const isFull = all.size >= MAX_SERIES;
    const labels = given.map((label) => (isFull ? OTHER : label.slice(0, MAX_LABEL_CHARACTERS).toWellFormed()));
    const key = labels.join('\0');
    const found = all.get(key);
    if (found !== undefined) return found;
    const made = new Series(name, labels, this.#histograms.get(name));
    all.set(key, made);
    return made;
  }

  /** Returns everything in the text format of Prometheus. */
  toText(): string {
    return NAMES.map((name) => this.#describe(name)).join('');
  }

  /** Leaves OpenTelemetry. */
  [Symbol.dispose](): void {
    for (const leave of this.#leave.splice(0)) leave();
  }

  #offer(name: MetricName, meter: OtelMeter): void {
    const { kind, unit, help: description } = METRICS[name];
    if (kind === 'histogram') {
      const advice = { explicitBucketBoundaries: [...BOUNDS] };
      this.#histograms.set(name, meter.createHistogram(name, { unit, description, advice }));
      return;
    }
    const instrument =
      kind === 'counter'
        ? meter.createObservableCounter(name, { unit, description })
        : meter.createObservableGauge(name, { unit, description });
    const observe = (result: ObservableResult): void => {
      for (const { value, attributes } of this.#series.get(name)!.values()) result.observe(value, attributes);
    };
    instrument.addCallback(observe);
    this.#leave.push(() => instrument.removeCallback(observe));
  }

  #describe(name: MetricName): string {
    const { kind, help } = METRICS[name];
    const exposed = toPrometheusName(name);
    const lines = [`# HELP ${exposed} ${help}`, `# TYPE ${exposed} ${kind}`];
    for (const series of this.#series.get(name)!.values()) {
      if (kind === 'histogram') lines.push(...histogramLines(name, series));
      else lines.push(`${exposed}${labelsText(name, series)} ${series.value}`);
    }
    return `${lines.join('\n')}\n`;
  }
}

function histogramLines(name: MetricName, series: Series): readonly string[] {
  const exposed = toPrometheusName(name);
  let count = 0;
  const lines = series.buckets.map((found, i) => {
    count += found;
    return `${exposed}_bucket${labelsText(name, series, `le="${BOUNDS[i] ?? '+Inf'}"`)} ${count}`;
  });
  const labels = labelsText(name, series);
  return [...lines, `${exposed}_sum${labels} ${series.value}`, `${exposed}_count${labels} ${count}`];
}

function labelsText(name: MetricName, { labels }: Series, more?: string): string {
  const pairs = labels.map((value, i) => `${METRICS[name].labels[i]}="${escapeLabel(value)}"`);
  if (more !== undefined) pairs.push(more);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

function escapeLabel(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}

/** In OpenTelemetry the labels of Whoa have its prefix, and an agent has the name that the conventions give it. */
function attributesOf(name: MetricName, labels: readonly string[]): Attributes {
  return Object.fromEntries(
    METRICS[name].labels.map((label, i) => [label === 'agent' ? 'gen_ai.agent.name' : `whoa.${label}`, labels[i]!]),
  );
}
