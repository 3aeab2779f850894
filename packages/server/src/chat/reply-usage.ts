import type { StoppableTurn } from '@whoa/ai-sdk';
import { earlyUsage } from '@whoa/ai-sdk/internal';
import type { Usage } from '@whoa/core';
import { addUsage, NO_USAGE } from '@whoa/core/internal';
import type { ModelMessage } from 'ai';
import type { ChatTools } from './reply-options.ts';

type Tokens = Partial<Pick<Usage, 'inputTokens' | 'outputTokens'>>;

interface CountedPart {
  readonly type: string;
  readonly usage?: Tokens;
  readonly rawValue?: unknown;
}

/** Counts the tokens of a reply, over all its workers, from the parts of its stream. */
export class UsageCounter {
  #ended: Usage | undefined;
  /** What the provider has reported of the current step. */
  #step: Tokens | undefined;

  constructor(before: Usage | undefined) {
    this.#ended = before;
  }

  /** What is known so far. Undefined if nothing was reported: nothing is guessed. */
  get current(): Usage | undefined {
    if (this.#step === undefined) return this.#ended;
    return addUsage(this.#ended ?? NO_USAGE, { inputTokens: 0, outputTokens: 0, ...this.#step, isComplete: false });
  }

  /** Returns the turn, to spread in its place. Providers report what a cut step has used only in their own events. */
  watch<Turn extends StoppableTurn<ChatTools, ModelMessage>>(turn: Turn): Turn {
    const watched = {
      ...turn,
      include: { rawChunks: true },
      experimental_transform: () => {
        const counting = new TransformStream<CountedPart, CountedPart>({
          transform: (part, controller) => {
            this.#read(part);
            if (part.type !== 'raw') controller.enqueue(part);
          },
        });
        const readable = counting.readable.pipeThrough(turn.experimental_transform());
        return { writable: counting.writable, readable };
      },
    };
    return Object.defineProperty(watched, 'settled', { value: turn.settled, enumerable: false }) as unknown as Turn;
  }

  #read({ type, usage, rawValue }: CountedPart): void {
    if (type === 'raw') {
      const { type: _, ...reported } = earlyUsage(rawValue) ?? { type: 'usage' };
      if (Object.keys(reported).length > 0) this.#step = { ...this.#step, ...(reported as Tokens) };
    } else if (type === 'finish-step') {
      const { inputTokens = this.#step?.inputTokens, outputTokens = this.#step?.outputTokens } = usage ?? {};
      this.#step = undefined;
      if (inputTokens === undefined && outputTokens === undefined) return;
      const used = { inputTokens: inputTokens ?? 0, outputTokens: outputTokens ?? 0, isComplete: true };
      this.#ended = addUsage(this.#ended ?? { ...NO_USAGE, isComplete: true }, used);
    }
  }
}

interface UsageOnly {
  readonly usage: Usage;
}

/** Returns whether metadata is what `withUsage` has made. */
export function isUsageOnly(metadata: unknown): metadata is UsageOnly {
  const { usage, ...others } = (metadata ?? {}) as { readonly usage?: Partial<Usage> };
  return typeof usage?.isComplete === 'boolean' && Object.keys(others).length === 0;
}

/** Returns the tokens of a reply as its metadata, with those before it was continued; other metadata is left alone. */
export function withUsage(metadata: unknown, before: unknown, usage: Usage | undefined): UsageOnly | undefined {
  if (usage === undefined || (metadata !== undefined && !isUsageOnly(metadata))) return undefined;
  return { usage: isUsageOnly(before) ? addUsage(before.usage, usage) : usage };
}
