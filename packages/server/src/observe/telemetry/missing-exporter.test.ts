import { expect, test, vi } from 'vitest';
import { createPrometheusMetrics } from './prometheus.ts';
import { createTelemetry } from './telemetry.ts';

vi.mock('@opentelemetry/exporter-prometheus', () => Promise.reject(new Error('Cannot find package')));

test('telemetry works without the exporter, and metrics for Prometheus fail with what to install', async () => {
  const telemetry = createTelemetry();
  telemetry.count('whoa.work.late');
  await expect(createPrometheusMetrics()).rejects.toThrow(
    'npm install @opentelemetry/exporter-prometheus @opentelemetry/sdk-metrics',
  );
  await telemetry[Symbol.asyncDispose]();
});
