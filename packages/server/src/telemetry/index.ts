// OpenTelemetry spans and metrics, and the metrics for Prometheus.
export { createTelemetry, type Telemetry, type TelemetryOptions } from './telemetry.ts';
export { createPrometheusMetrics, type PrometheusMetrics } from './prometheus.ts';
export type { TelemetryLog } from './work-counts.ts';
export type { MetricName } from './metrics.ts';
