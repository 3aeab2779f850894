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
  readonly error?: unknown;
}

type Given = Parameters<StoppableTurn<ChatTools, ModelMessage>['with']>[0];

/** Counts the tokens of a reply, over all its workers, from the parts of its stream. */
export class UsageCounter {
  #ended: Usage | undefined;
  /** What the provider has reported of the current step. */
  #step: Tokens | undefined;
  /** The last error in the stream. Pages, and a loop that converts its stream itself, get only words. */
  error: unknown;

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
    const counted = (given: Given): Given => {
      const include = (given['include'] ?? {}) as { readonly rawChunks?: boolean };
      const transforms = [() => this.#count(include.rawChunks === true), given['experimental_transform'] ?? []];
      return { ...given, include: { ...include, rawChunks: true }, experimental_transform: transforms.flat() };
    };
    const { include, experimental_transform } = turn.with(counted({})) as unknown as Given;
    return Object.defineProperties({ ...turn, include, experimental_transform } as unknown as Turn, {
      settled: { value: turn.settled },
      with: { value: (given: Given) => turn.with(counted(given)) },
    });
  }

  /** Creates a stream that passes its parts on, raw ones only to a loop that asked for them. */
  #count(keepsRaw: boolean): TransformStream<CountedPart, CountedPart> {
    return new TransformStream({
      transform: (part, controller) => {
        this.#read(part);
        if (part.type !== 'raw' || keepsRaw) controller.enqueue(part);
      },
    });
  }

  #read({ type, usage, rawValue, error }: CountedPart): void {
    if (type === 'error') this.error = error;
    else if (type === 'raw') {
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
