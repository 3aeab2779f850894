// OpenTelemetry spans and metrics, and the text for Prometheus.
export { createTelemetry, type Telemetry, type TelemetryOptions } from './telemetry.ts';
export type { TelemetryLog } from './work-counts.ts';
export { METRICS, type Metric, type MetricName, toPrometheusName } from './metrics.ts';
