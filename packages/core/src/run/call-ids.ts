import type { ModelMessage, ModelPart } from './model.ts';

/**
 * Gives every call of a history an id of its own. Providers count anew in each reply now and then, and one id for two calls
 * would mix up their results, their undos and what people are shown.
 */
export class CallIds {
  readonly #taken = new Set<string>();
  /** Calls of this reply that have begun, by the id the provider gave them. */
  readonly #begun = new Map<string, string>();

  constructor(messages: readonly ModelMessage[]) {
    for (const message of messages) if (message.role === 'tool') this.#taken.add(message.callId);
  }

  /** The same part, with the id of its call made unique. */
  own(part: ModelPart): ModelPart {
    if (part.type === 'call-start') return named(part, this.#begin(part.callId));
    if (part.type !== 'call-arguments' && part.type !== 'call-end') return part;
    const callId = this.#begun.get(part.callId) ?? this.#begin(part.callId);
    if (part.type === 'call-end') this.#begun.delete(part.callId);
    return named(part, callId);
  }

  #begin(given: string): string {
    let callId = given;
    for (let n = 2; this.#taken.has(callId); n++) callId = `${given}-${n}`;
    this.#taken.add(callId);
    this.#begun.set(given, callId);
    return callId;
  }
}

function named<Part extends ModelPart & { readonly callId: string }>(part: Part, callId: string): Part {
  return part.callId === callId ? part : { ...part, callId };
}
