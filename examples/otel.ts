// Sends the spans and metrics of a process to an OpenTelemetry collector, at OTEL_EXPORTER_OTLP_ENDPOINT:
//   NODE_OPTIONS='--import ./otel.ts' whoa worker
import { context, metrics, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';

context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
const processor = new BatchSpanProcessor({ exporter: new OTLPTraceExporter() });
trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [processor] }));
const reader = new PeriodicExportingMetricReader({ exporter: new OTLPMetricExporter() });
metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));
