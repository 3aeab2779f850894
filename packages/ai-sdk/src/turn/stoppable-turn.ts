import { CancellationToken } from '@whoa/core';
import { MAX_SHIELD_MS } from '@whoa/core/internal';
import { closeCalls, closeTurn } from '../messages/close-open-calls.ts';
import { type AiSdkTool, checkNames } from '../tools/ai-sdk-tool.ts';
import { guardTools, type WaitedCall } from '../tools/guard-ai-sdk-tools.ts';
import type { FinishedStep } from './added-messages.ts';
import type { CallLedger } from './call-ledger.ts';
import type { AiSdkMessage } from './call-sites.ts';
import { type SettledTurn, Turn } from './turn.ts';

type Tools = Readonly<Record<string, AiSdkTool>>;

export interface StoppableTurnOptions<T extends Tools, Message extends AiSdkMessage> {
  /** The messages so far, as `convertToModelMessages` returns them. */
  readonly history: readonly Message[];
  readonly tools: T;
  /** One per conversation. Records every call, including those that the loop forgets. */
  readonly calls: CallLedger;
  /** Tools that must not be interrupted, each with its time limit. */
  readonly mustFinish?: { readonly [Name in keyof T]?: { readonly timeoutMs: number } };
  /** How many steps the loop may take. Defaults to 20. */
  readonly maxSteps?: number;
  /** Called when a cancel has to wait for a call. */
  readonly onWait?: (call: WaitedCall) => void;
  /** Stops the turn: a token, a signal (which means `now`), or both. */
  readonly token?: CancellationToken;
  readonly signal?: AbortSignal;
}

/** Spread this into `streamText` or `generateText`. `settled` is not enumerable, so it is not spread. */
export interface StoppableTurn<T extends Tools, Message extends AiSdkMessage> {
  /** The history, closed and valid. */
  readonly messages: Message[];
  /** The tools, guarded. */
  readonly tools: T;
  readonly abortSignal: AbortSignal;
  /** True once the turn is cancelled or has taken all its steps. */
  readonly stopWhen: (options: { readonly steps: readonly unknown[] }) => boolean;
  /** Reports the messages of a finished step. */
  readonly onStepFinish: (step: FinishedStep) => void;
  /** Keeps the messages of later steps as valid as the history. */
  readonly prepareStep: <M extends AiSdkMessage>(options: { readonly messages: readonly M[] }) => { messages: M[] };
  /**
   * Turns off storage in OpenAI's Responses API. Otherwise the AI SDK sends references to stored items, and a reply
   * that was cut off is not stored: the next turn would be refused.
   */
  readonly providerOptions: { readonly [provider in 'openai' | 'azure']: { store: false } };
  /** Passes every part on unchanged, to see what it shows and when it ends. Only `streamText` uses it. */
  // biome-ignore lint/suspicious/noExplicitAny: the parts are those of whichever `ai` it is spread into.
  readonly experimental_transform: () => TransformStream<any, any>;
  /**
   * Resolves when the turn is over and none of its calls is running: each has ended or was abandoned. Then the turn's
   * resources are disposed, and a call that still starts is rejected.
   *
   * A `streamText` turn is over when its stream ends, even if this is awaited earlier. `generateText` does not report
   * its end, so await this after it.
   */
  readonly settled: Promise<SettledTurn<Message>>;
}

const MAX_STEPS = 20;

/**
 * Prepares one turn of your own loop so that it can be stopped: within the time of its ladder, with a history that is
 * valid and accurate for the next turn.
 *
 * @returns The options to spread into `streamText` or `generateText`, and `settled`, which resolves when the turn has
 * ended.
 * @throws TypeError when there is neither a token nor a signal, or `mustFinish` names an unknown tool.
 *
 * @example
 * ```ts
 * import { createCallLedger, createStoppableTurn } from '@whoa/ai-sdk';
 * import { type ModelMessage, streamText } from 'ai';
 *
 * const calls = createCallLedger();
 * const history: ModelMessage[] = [{ role: 'user', content: 'Charge the card' }];
 * const turn = createStoppableTurn({ token, history, tools, calls });
 * const result = streamText({ model, ...turn });
 * for await (const text of result.textStream) process.stdout.write(text);
 * const { messages } = await turn.settled;
 * history.push(...messages);
 * ```
 */
export function createStoppableTurn<T extends Tools, Message extends AiSdkMessage>(
  options: StoppableTurnOptions<T, Message>,
): StoppableTurn<T, Message> {
  const { tools, calls, mustFinish = {}, maxSteps = MAX_STEPS, onWait, signal } = options;
  checkOptions(options);
  const messages = closeCalls(options.history, { ledger: calls, keepsNextIds: true });
  // A caller may add to its list while the turn runs.
  const history = [...options.history];
  const isElsewhere = (name: string): boolean => Object.hasOwn(tools, name) && tools[name]!.execute === undefined;
  // The turn's own token can be disposed, whatever its source was.
  const about = { parent: options.token, name: 'turn' };
  const token = signal === undefined ? new CancellationToken(about) : CancellationToken.from(signal, about);
  const turn = new Turn(token, calls, (added) => closeTurn(added, { ledger: calls, history, isElsewhere }));
  const bounds = Object.entries(mustFinish as Readonly<Record<string, { readonly timeoutMs: number }>>).map(
    ([name, { timeoutMs }]) => [name, { whenCancelled: 'finish', timeoutMs }] as const,
  );
  const guarded = guardTools(tools, {
    calls,
    bounds: Object.fromEntries(bounds),
    ...(onWait && { onWait }),
    onCall: (record, input) => turn.watchCall(record, input),
    token,
  });
  const spread = {
    messages,
    tools: guarded,
    abortSignal: token.signal,
    stopWhen: ({ steps }: { readonly steps: readonly unknown[] }) => token.isCancelled || steps.length >= maxSteps,
    prepareStep: <M extends AiSdkMessage>({ messages: sent }: { readonly messages: readonly M[] }) => {
      // The model is asked next: under a drain it must not be, and by now no call of the step before is running.
      turn.endDrain();
      turn.added.begin(sent, messages.at(-1));
      return { messages: closeCalls(sent, { ledger: calls }) };
    },
    onStepFinish: (step: FinishedStep) => turn.added.finish(step),
    providerOptions: { openai: { store: false }, azure: { store: false } },
    experimental_transform: () => turn.watchStream(),
  };
  return Object.defineProperty(spread, 'settled', { value: turn.settled, enumerable: false }) as StoppableTurn<
    T,
    Message
  >;
}

function checkOptions({ tools, mustFinish = {}, maxSteps, token, signal }: StoppableTurnOptions<Tools, AiSdkMessage>) {
  if (token === undefined && signal === undefined)
    throw new TypeError('token: a stoppable turn needs a token or a signal; without one it cannot be stopped');
  if (maxSteps !== undefined && !(maxSteps >= 1))
    throw new RangeError(`maxSteps: expected a number of at least 1, got ${maxSteps}`);
  checkNames('mustFinish', mustFinish, tools);
  for (const [name, bound] of Object.entries(mustFinish)) {
    const timeoutMs: unknown = bound?.timeoutMs;
    if (typeof timeoutMs === 'number' && timeoutMs > 0 && timeoutMs <= MAX_SHIELD_MS) continue;
    throw new RangeError(
      `mustFinish.${name}.timeoutMs: expected milliseconds from 1 to ${MAX_SHIELD_MS}, got ${String(timeoutMs)}`,
    );
  }
}
