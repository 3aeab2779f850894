import { type Context, context, isSpanContextValid, type Link, type SpanContext, trace } from '@opentelemetry/api';

/** The W3C trace context. Later versions may have more fields; zeros are not valid. */
const FORM = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/** Reads a `traceparent`; undefined if it is not one, because a trace is never worth an error. */
function readTraceparent(text: string | null | undefined): SpanContext | undefined {
  const [, traceId, spanId, flags] = FORM.exec(text ?? '') ?? [];
  if (traceId === undefined) return undefined;
  return { traceId, spanId: spanId!, traceFlags: Number.parseInt(flags!, 16), isRemote: true };
}

function toTraceparent({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
}

/** Returns the fields that record where a request came from: the active span, otherwise what `text` names. */
export function findTrace(text: string | null | undefined): { readonly traceparent?: string } {
  const active = trace.getSpanContext(context.active());
  const from = active && isSpanContextValid(active) ? active : readTraceparent(text);
  return from === undefined ? {} : { traceparent: toTraceparent(from) };
}

/** Returns the context in which a span is part of the trace. */
export function addTrace(base: Context, text: string | undefined): Context {
  const from = readTraceparent(text);
  return from === undefined ? base : trace.setSpanContext(base, from);
}

/** Returns the link from a cancel to the span that requested it, which may be part of another trace. */
export function findLinks({ traceparent }: { readonly traceparent?: string | undefined }): Link[] {
  const from = readTraceparent(traceparent);
  return from === undefined ? [] : [{ context: from }];
}
