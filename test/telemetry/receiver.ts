// A collector for OTLP over HTTP, as JSON.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

interface Named {
  readonly name: string;
}

export interface ReceivedSpan extends Named {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly links?: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[];
}

/** The parts of a request that tests read. */
interface Sent {
  readonly resourceSpans?: readonly { readonly scopeSpans: readonly { readonly spans: readonly ReceivedSpan[] }[] }[];
  readonly resourceMetrics?: readonly { readonly scopeMetrics: readonly { readonly metrics: readonly Named[] }[] }[];
}

export interface Receiver {
  readonly url: string;
  readonly spans: readonly ReceivedSpan[];
  /** The names of the metrics that arrived. */
  readonly metrics: ReadonlySet<string>;
}

/** Starts a collector. It is closed when the test has ended. */
export async function startReceiver(): Promise<Receiver> {
  const spans: ReceivedSpan[] = [];
  const metrics = new Set<string>();
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const sent = JSON.parse(Buffer.concat(chunks).toString()) as Sent;
      for (const { scopeSpans } of sent.resourceSpans ?? []) for (const one of scopeSpans) spans.push(...one.spans);
      for (const { scopeMetrics } of sent.resourceMetrics ?? [])
        for (const one of scopeMetrics) for (const { name } of one.metrics) metrics.add(name);
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, spans, metrics };
}
