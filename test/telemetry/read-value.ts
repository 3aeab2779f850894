import { type MetricName, toPrometheusName } from '../../packages/server/src/observe/telemetry/metrics.ts';

/** Returns the value of a series in the text for Prometheus. `labels` is written as there: `{agent="assistant"}`. */
export function readValue(text: string, name: MetricName, labels = ''): number | undefined {
  const line = text.split('\n').find((one) => one.startsWith(`${toPrometheusName(name)}${labels} `));
  return line === undefined ? undefined : Number(line.split(' ').at(-1));
}
