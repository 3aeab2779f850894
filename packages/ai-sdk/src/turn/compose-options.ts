import { CancellationToken } from '@whoa/core';
import type { AiSdkTool } from '../tools/ai-sdk-tool.ts';
import type { FinishedStep } from './added-messages.ts';
import type { AiSdkMessage } from './call-sites.ts';

type Tools = Readonly<Record<string, AiSdkTool>>;
// biome-ignore lint/suspicious/noExplicitAny: callbacks get what the loop's own version of `ai` passes.
type Callback = (...given: any[]) => any;

/** Options of an application's own `streamText` or `generateText`. */
export interface LoopOptions {
  readonly [option: string]: Callback | object | string | number | boolean | null | undefined;
}

/** The application's options, with those of its turn in place of theirs: each does what both would. */
export type WithTurn<Turn, Given> = Omit<Given, keyof Turn> & Omit<Turn, 'settled' | 'with'>;

/** What composing needs of a turn. */
interface TurnParts {
  /** What the turn spreads. */
  readonly own: {
    readonly tools: Tools;
    readonly abortSignal: AbortSignal;
    readonly prepareStep: (options: { readonly messages: readonly AiSdkMessage[] }) => object;
    readonly onStepFinish: (step: FinishedStep) => void;
    readonly providerOptions: object;
    readonly experimental_transform: () => TransformStream;
  };
  readonly token: CancellationToken;
  /** Whether the loop must take no more steps. `hasRule`: the application says itself how many. */
  readonly isOver: (steps: readonly unknown[], hasRule: boolean) => boolean;
  readonly close: (messages: readonly AiSdkMessage[]) => AiSdkMessage[];
  readonly guard: (tools: Tools) => Tools;
}

/** Composes the options of an application's own loop with those of its turn, so that both have their effect. */
export function composeOptions(given: LoopOptions, { own, token, isOver, close, guard }: TurnParts): LoopOptions {
  const { stopWhen, prepareStep, onStepFinish, onStepEnd, abortSignal } = given as Record<string, Callback | undefined>;
  const rules = toList(stopWhen);
  const transforms = [...toList(given['experimental_transform']), own.experimental_transform];
  const theirs = Object.entries((given['tools'] ?? {}) as Tools).filter(([name, tool]) => tool !== own.tools[name]);
  return {
    ...given,
    ...own,
    tools: { ...own.tools, ...guard(Object.fromEntries(theirs)) },
    abortSignal: abortSignal === undefined ? own.abortSignal : joinSignal(abortSignal as unknown as AbortSignal, token),
    async stopWhen(options: { readonly steps: readonly unknown[] }) {
      if (isOver(options.steps, rules.length > 0)) return true;
      return (await Promise.all(rules.map((rule) => rule(options) as unknown))).some(Boolean);
    },
    async prepareStep(options: { readonly messages: readonly AiSdkMessage[] }) {
      const ready = own.prepareStep(options);
      const prepared = (await prepareStep?.({ ...options, ...ready })) as
        | { messages?: readonly AiSdkMessage[] }
        | undefined;
      return { ...ready, ...prepared, ...(prepared?.messages && { messages: close(prepared.messages) }) };
    },
    onStepFinish: callBoth(own.onStepFinish, onStepFinish),
    // The newer name of the same callback; the loop calls one of them.
    ...(onStepEnd !== undefined && { onStepEnd: callBoth(own.onStepFinish, onStepEnd) }),
    providerOptions: merge(given['providerOptions'], own.providerOptions) as object,
    // The turn's own is last: what it keeps is what the reader was shown.
    experimental_transform: (...options: unknown[]) =>
      transforms
        .map((create) => create(...options) as TransformStream)
        .reduce((first, next) => ({ writable: first.writable, readable: first.readable.pipeThrough(next) })),
  };
}

function toList(given: unknown): readonly Callback[] {
  return given === undefined || given === null ? [] : ([given].flat() as Callback[]);
}

function callBoth(own: (step: FinishedStep) => void, theirs: Callback | undefined): Callback {
  return async (step: FinishedStep) => {
    own(step);
    await theirs?.(step);
  };
}

/** Returns a signal that fires with either. The application's may live much longer than the turn. */
function joinSignal(signal: AbortSignal, parent: CancellationToken): AbortSignal {
  const joined = CancellationToken.from(signal, { parent, name: "the loop's own signal" });
  joined.onCancel((level) => level === 'drain' || joined[Symbol.dispose]());
  return joined.signal;
}

/** Merges nested options. Where both have a value, `ours` is used. */
function merge(theirs: unknown, ours: unknown): unknown {
  if (!isPlain(theirs) || !isPlain(ours)) return ours ?? theirs;
  const names = new Set([...Object.keys(theirs), ...Object.keys(ours)]);
  return Object.fromEntries([...names].map((name) => [name, merge(theirs[name], ours[name])]));
}

function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
