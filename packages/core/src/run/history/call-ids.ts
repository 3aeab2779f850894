import type { Call } from '../../tool/call/call.ts';
import type { ModelMessage, ModelPart } from '../reply/model.ts';
import type { Step } from '../reply/planner.ts';
import type { AssistantPart, Message } from './message.ts';

/** The lowest limit of all providers: that of OpenAI's Chat Completions. */
const MAX_ID_CHARACTERS = 40;

/**
 * Gives every call a unique id that is safe for every provider: its original id if that is safe and free. Providers and
 * planners sometimes restart their counters, and one id for two calls would mix up their results, their undos and what
 * users see.
 */
export class CallIds {
  readonly #taken = new Set<string>();
  /** The number to try next, by the requested id: a thousand calls with the same id must not cost a million lookups. */
  readonly #next = new Map<string, number>();

  /** No call gets an id that occurs in these messages. */
  reserve(messages: readonly (Message | ModelMessage)[]): this {
    for (const message of messages) {
      if (message.role === 'tool') this.#taken.add(message.callId);
      if (message.role !== 'assistant') continue;
      for (const part of message.content) if (part.type === 'call') this.#taken.add(part.callId);
    }
    return this;
  }

  take(given: unknown): string {
    const wanted = safeId(given);
    let id = wanted;
    for (let n = this.#next.get(wanted) ?? 2; this.#taken.has(id); n++) {
      id = `${wanted.slice(0, MAX_ID_CHARACTERS - `-${n}`.length)}-${n}`;
      this.#next.set(wanted, n + 1);
    }
    this.#taken.add(id);
    return id;
  }
}

function safeId(given: unknown): string {
  if (typeof given !== 'string' || given === '') return 'call';
  return given.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, MAX_ID_CHARACTERS);
}

/**
 * The ids of the calls of one streamed reply: all parts of a call get the same id, and two calls with the same provider
 * id get two.
 */
export class ReplyCallIds {
  readonly #ids: CallIds;
  /** Calls that have started, by the provider's id. */
  readonly #started = new Map<string, string>();

  constructor(ids: CallIds) {
    this.#ids = ids;
  }

  own(part: ModelPart): ModelPart {
    if (part.type === 'call-start') return named(part, this.#begin(part.callId));
    if (part.type !== 'call-arguments' && part.type !== 'call-end') return part;
    const callId = this.#started.get(part.callId) ?? this.#begin(part.callId);
    if (part.type === 'call-end') this.#started.delete(part.callId);
    return named(part, callId);
  }

  #begin(given: string): string {
    const callId = this.#ids.take(given);
    this.#started.set(given, callId);
    return callId;
  }
}

function named<Part extends { readonly callId: string; readonly providerId?: string }>(
  part: Part,
  callId: string,
): Part {
  return part.callId === callId ? part : { ...part, callId, providerId: part.providerId ?? part.callId };
}

/**
 * The ids of the calls of one turn, from a model or any other planner: announced calls, requested calls and their
 * dependencies.
 */
export class TurnCallIds {
  readonly #ids: CallIds;
  readonly #own = new Map<string, string>();

  constructor(ids: CallIds) {
    this.#ids = ids;
  }

  own(given: string): string {
    let own = this.#own.get(given);
    if (own === undefined) this.#own.set(given, (own = this.#ids.take(given)));
    return own;
  }

  /** Returns the same step with our own ids. Calls missing from its message are added to it: nothing runs unseen. */
  ofStep({ message, calls }: Step): Step {
    const seen = new Set<string>();
    const content = message.content.map((part): AssistantPart => {
      if (part.type !== 'call') return part;
      seen.add(part.callId);
      return named(part, this.own(part.callId));
    });
    for (const { id: callId, tool, input } of calls) {
      if (!seen.has(callId)) content.push(named({ type: 'call' as const, callId, tool, input }, this.own(callId)));
    }
    const own = calls.map((call) => ({
      ...call,
      id: this.own(call.id),
      ...(call.dependsOn && { dependsOn: call.dependsOn.map((id) => this.#own.get(id) ?? id) }),
    }));
    return { message: { ...message, content: withNeeds(content, own) }, calls: own };
  }
}

/** Adds to calls what they depend on: a worker that continues the run has only the message. */
function withNeeds(content: AssistantPart[], calls: readonly Call[]): AssistantPart[] {
  const needs = new Map(calls.flatMap(({ id, dependsOn }) => (dependsOn?.length ? [[id, dependsOn] as const] : [])));
  if (needs.size === 0) return content;
  return content.map((part) => {
    const dependsOn = part.type === 'call' ? needs.get(part.callId) : undefined;
    return dependsOn === undefined ? part : { ...part, dependsOn };
  });
}
