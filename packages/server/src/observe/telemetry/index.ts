// OpenTelemetry spans and metrics, and the metrics for Prometheus.
export { createTelemetry, type Telemetry } from './telemetry.ts';
export { createPrometheusMetrics, type PrometheusMetrics } from './prometheus.ts';
