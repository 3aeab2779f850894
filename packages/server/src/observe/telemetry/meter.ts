import type { Attributes, Meter as OtelMeter } from '@opentelemetry/api';
import { METRICS, type MetricName, toPrometheusName } from './metrics.ts';

/** Upper bounds of the buckets, in seconds. */
const BOUNDS: readonly number[] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
/** More label values than this are counted under `other`: agent names can come from anywhere, and no SDK bounds them over time. */
const MAX_SERIES = 1_000;
const MAX_LABEL_CHARACTERS = 100;
const OTHER = 'other';

/** Where metrics are recorded. */
export interface MetricOutput {
  readonly meter: OtelMeter;
  /** Names are those of Prometheus. Its exporter does not add units to names, so these have them. */
  readonly isPrometheus: boolean;
}

type Write = (value: number) => void;

/** One metric with one set of labels. Keep it where it is used often. */
export class Series {
  readonly #writes: readonly Write[];

  constructor(writes: readonly Write[]) {
    this.#writes = writes;
  }

  add(amount = 1): void {
    this.#write(amount);
  }

  set(value: number): void {
    this.#write(value);
  }

  /** Records a time in milliseconds. Clocks of two machines can differ, so it may be negative: that counts as 0. */
  time(ms: number): void {
    this.#write(Math.max(0, ms) / 1_000);
  }

  #write(value: number): void {
    for (const write of this.#writes) write(value);
  }
}

/** An instrument that still needs the values of its labels. */
type Instrument = (labels: readonly string[]) => Write;

/** Records metrics with instruments of OpenTelemetry, one for each output. */
export class Meter {
  readonly #instruments = new Map<MetricName, readonly Instrument[]>();
  readonly #series = new Map<MetricName, Map<string, Series>>();

  constructor(outputs: readonly MetricOutput[]) {
    for (const name of Object.keys(METRICS) as MetricName[]) {
      this.#instruments.set(
        name,
        outputs.map((output) => createInstrument(output, name)),
      );
      this.#series.set(name, new Map());
      if (isCounter(name) && METRICS[name].labels.length === 0) this.series(name);
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
    const made = new Series(this.#instruments.get(name)!.map((instrument) => instrument(labels)));
    all.set(key, made);
    // A counter that is missing until its first event looks like one that is never scraped.
    if (isCounter(name)) made.add(0);
    return made;
  }
}

function createInstrument({ meter, isPrometheus }: MetricOutput, metric: MetricName): Instrument {
  const { kind, unit, labels: keys, help: description } = METRICS[metric];
  const name = isPrometheus ? toPrometheusName(metric) : metric;
  const options = { description, ...(!isPrometheus && { unit }) };
  // In OpenTelemetry, labels have the prefix of Whoa, and an agent the name from the conventions.
  const toAttribute = (label: string): string =>
    isPrometheus ? label : label === 'agent' ? 'gen_ai.agent.name' : `whoa.${label}`;
  const toAttributes = (labels: readonly string[]): Attributes =>
    Object.fromEntries(keys.map((key, i) => [toAttribute(key), labels[i]!]));
  if (kind === 'counter') {
    const counter = meter.createCounter(name, options);
    return (labels) => {
      const attributes = toAttributes(labels);
      return (value) => counter.add(value, attributes);
    };
  }
  const advice = { explicitBucketBoundaries: [...(METRICS[metric].bounds ?? BOUNDS)] };
  const recorder =
    kind === 'gauge' ? meter.createGauge(name, options) : meter.createHistogram(name, { ...options, advice });
  return (labels) => {
    const attributes = toAttributes(labels);
    return (value) => recorder.record(value, attributes);
  };
}

function isCounter(name: MetricName): boolean {
  return METRICS[name].kind === 'counter';
}
