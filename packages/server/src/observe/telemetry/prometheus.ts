import { diag, type MeterProvider } from '@opentelemetry/api';

/** The metrics of this process, as Prometheus reads them. */
export interface PrometheusMetrics {
  /** Where telemetry records. Your own instruments can be added. */
  readonly meterProvider: MeterProvider;
  /** Returns all metrics in the text format of Prometheus, version 0.0.4. */
  readonly read: () => Promise<string>;
}

/**
 * Creates metrics for Prometheus with OpenTelemetry's exporter. Pass them to `createTelemetry`.
 *
 * @returns The metrics. They hold no socket and no timer, so there is nothing to dispose.
 * @throws If `@opentelemetry/exporter-prometheus` or `@opentelemetry/sdk-metrics` is not installed.
 */
export async function createPrometheusMetrics(): Promise<PrometheusMetrics> {
  const [{ PrometheusExporter, PrometheusSerializer }, { MeterProvider }] = await loadExporter();
  const exporter = new PrometheusExporter({ preventServerStart: true });
  const meterProvider = new MeterProvider({ readers: [exporter] });
  // No prefix, timestamps or labels of the resource; without `target_info` and labels of the scope.
  const serializer = new PrometheusSerializer('', false, undefined, true, true);
  return {
    meterProvider,
    async read() {
      const { resourceMetrics, errors } = await exporter.collect();
      if (errors.length > 0) diag.error('Some metrics could not be read', ...errors);
      return serializer.serialize(resourceMetrics);
    },
  };
}

async function loadExporter() {
  try {
    return await Promise.all([import('@opentelemetry/exporter-prometheus'), import('@opentelemetry/sdk-metrics')]);
  } catch (error) {
    throw new Error(
      "Metrics for Prometheus need OpenTelemetry's exporter: npm install @opentelemetry/exporter-prometheus @opentelemetry/sdk-metrics",
      { cause: error },
    );
  }
}
