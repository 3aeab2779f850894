import {
  type Attributes,
  type Context,
  type Span,
  SpanKind,
  type SpanOptions,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import type { RunEvent } from '@whoa/core';
import { findLinks } from '../../http/traceparent.ts';

type Of<Type extends RunEvent['type']> = Extract<RunEvent, { type: Type }>;

/** Where the spans of a run go. */
export interface RunSpansOptions {
  readonly tracer: Tracer;
  /** The context that holds the span of the run. */
  readonly context: Context;
}

/** The name and attributes of the span of an agent's run. Names are those of the GenAI conventions, if they have one. */
export function agentSpan(agent: string, more: Attributes = {}): [name: string, attributes: Attributes] {
  const attributes = { 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.agent.name': agent, ...more };
  return [`invoke_agent ${agent}`, attributes];
}

/**
 * Turns the events of one run into spans: its calls, the runs inside them, and its stop. Only names, ids, numbers and
 * states are recorded: nothing that a user, a model or a tool wrote.
 */
export class RunSpans {
  readonly #options: RunSpansOptions;
  readonly #span: Span;
  readonly #calls = new Map<string, Span>();
  readonly #nested = new Map<string, RunSpans>();
  #cancel: Span | undefined;

  constructor(options: RunSpansOptions) {
    this.#options = options;
    this.#span = trace.getSpan(options.context)!;
  }

  note(event: RunEvent): void {
    if (event.type === 'call-start') this.#startCall(event);
    else if (event.type === 'call-event') this.#recordNested(event.callId, event.event as RunEvent);
    else if (event.type === 'call-end') this.#endCall(event);
    else if (event.type === 'turn-end') this.#recordReply(event);
    else if (event.type === 'level-changed') this.#recordLevel(event);
    else if (event.type === 'run-end') this.#end(event);
  }

  #startCall({ callId, tool, at }: Of<'call-start'>): void {
    const attributes = {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': tool,
      'gen_ai.tool.call.id': callId,
      'gen_ai.tool.type': 'function',
    };
    this.#calls.set(callId, this.#child(`execute_tool ${tool}`, attributes, { startTime: at }));
  }

  #endCall({ result: { callId, state, reason, endedAt } }: Of<'call-end'>): void {
    const span = this.#calls.get(callId);
    // A call that never started has no span.
    if (span === undefined) return;
    this.#calls.delete(callId);
    this.#nested.delete(callId);
    span.setAttribute('whoa.call.state', state);
    if (reason !== undefined) span.setAttribute('whoa.cancel.kind', reason.kind);
    if (state === 'failed' || state === 'unknown') fail(span, state);
    span.end(endedAt);
  }

  #recordNested(callId: string, event: RunEvent): void {
    const call = this.#calls.get(callId);
    if (event.type === 'run-start' && call !== undefined) {
      const { tracer, context } = this.#options;
      const parent = trace.setSpan(context, call);
      const [name, attributes] = agentSpan(event.agent);
      const span = tracer.startSpan(name, { kind: SpanKind.INTERNAL, attributes, startTime: event.at }, parent);
      this.#nested.set(callId, new RunSpans({ tracer, context: trace.setSpan(parent, span) }));
    }
    this.#nested.get(callId)?.note(event);
  }

  #recordReply({ message: { provider, model } }: Of<'turn-end'>): void {
    if (provider !== undefined) this.#span.setAttribute('gen_ai.provider.name', provider);
    if (model !== undefined) this.#span.setAttribute('gen_ai.response.model', model);
  }

  #recordLevel({ level, reason, at }: Of<'level-changed'>): void {
    this.#cancel ??= this.#child('whoa.cancel', cancelAttributes(reason), { startTime: at, links: findLinks(reason) });
    this.#cancel.addEvent(`whoa.level.${level}`, {}, at);
  }

  #end({ at, outcome }: Of<'run-end'>): void {
    for (const span of this.#calls.values()) span.end(at);
    this.#cancel?.setAttribute('whoa.stop.clean', outcome.status === 'cancelled' && outcome.stop.isClean);
    this.#cancel?.end(at);
    this.#span.setAttributes({
      'whoa.run.status': outcome.status,
      'whoa.run.turns': outcome.turns,
      'gen_ai.usage.input_tokens': outcome.usage.inputTokens,
      'gen_ai.usage.output_tokens': outcome.usage.outputTokens,
      'whoa.usage.complete': outcome.usage.isComplete,
    });
    if (outcome.status === 'failed') fail(this.#span, getErrorCode(outcome.error));
    this.#span.end(at);
  }

  #child(name: string, attributes: Attributes, about: Pick<SpanOptions, 'startTime' | 'links'>): Span {
    const { tracer, context } = this.#options;
    return tracer.startSpan(name, { kind: SpanKind.INTERNAL, attributes, ...about }, context);
  }
}

/** A message may quote a user or a model, so only the kind and the way are kept. */
export function cancelAttributes({ kind, via }: { kind: string; via?: string | undefined }): Attributes {
  return { 'whoa.cancel.kind': kind, ...(via !== undefined && { 'whoa.cancel.via': via }) };
}

export function fail(span: Span, type: string): void {
  span.setAttribute('error.type', type);
  span.setStatus({ code: SpanStatusCode.ERROR });
}

/** The code or class of an error. */
export function getErrorCode(error: unknown): string {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown };
  return typeof code === 'string' ? code : typeof name === 'string' ? name : 'error';
}
