import { CancellationToken, SettingsError } from '@whoa/core';
import { SOURCE_RULES, settings } from '@whoa/core/internal';
import { closeCalls, closeTurn } from '../messages/close-open-calls.ts';
import { type AiSdkTool, mustFinishRule } from '../tools/ai-sdk-tool.ts';
import { guardTools, type WaitedCall } from '../tools/guard-ai-sdk-tools.ts';
import type { FinishedStep } from './added-messages.ts';
import type { CallRecord, CallRecords } from './call-records.ts';
import type { AiSdkMessage } from './call-sites.ts';
import { composeOptions, type LoopOptions, type WithTurn } from './compose-options.ts';
import { type SettledTurn, Turn } from './turn.ts';

type Tools = Readonly<Record<string, AiSdkTool>>;

export type StoppableTurnOptions<T extends Tools, Message extends AiSdkMessage> = StoppableTurnParts<T, Message> &
  (
    | { readonly token: CancellationToken; readonly signal?: AbortSignal | undefined }
    | { readonly token?: CancellationToken | undefined; readonly signal: AbortSignal }
  );

// An empty mapped type would accept any name.
type MustFinish<T extends Tools> = [keyof T] extends [never]
  ? Readonly<Record<string, never>>
  : { readonly [Name in keyof T]?: { readonly timeoutMs: number } | undefined };

interface StoppableTurnParts<T extends Tools, Message extends AiSdkMessage> {
  /** The messages so far, as `convertToModelMessages` returns them. */
  readonly history: readonly Message[];
  readonly tools: T;
  /** One per conversation. Records every call, including those that the loop forgets. */
  readonly calls: CallRecords;
  /** Tools that must not be interrupted, each with its time limit. */
  readonly mustFinish?: MustFinish<T> | undefined;
  /** How many steps the loop may take. Defaults to 20. */
  readonly maxSteps?: number | undefined;
  /** Called when a cancel has to wait for a call. */
  readonly onWait?: ((call: WaitedCall) => void) | undefined;
}

/** Spread this into `streamText` or `generateText`. `settled` and `with` are not enumerable, so they are not spread. */
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
  /**
   * Returns your own options together with those of the turn, to pass to `streamText` or `generateText`. Spreading the turn
   * after your options would replace yours; here both have their effect.
   */
  readonly with: <Given extends LoopOptions>(given: Given) => WithTurn<StoppableTurn<T, Message>, Given>;
}

const MAX_STEPS = 20;

/**
 * Prepares one turn of your own loop so that it can be stopped: within the time of its ladder, with a history that is
 * valid and accurate for the next turn.
 *
 * @returns The options to spread into `streamText` or `generateText`, and `settled`, which resolves when the turn has
 * ended.
 * @throws {@link SettingsError} when an option is invalid, or there is neither a token nor a signal.
 *
 * @example
 * ```ts
 * import { createCallRecords, createStoppableTurn } from '@whoa/ai-sdk';
 * import { type ModelMessage, streamText } from 'ai';
 *
 * const calls = createCallRecords();
 * const history: ModelMessage[] = [{ role: 'user', content: 'Charge the card' }];
 * const turn = createStoppableTurn({ token, history, tools, calls });
 * const result = streamText({ model, ...turn });
 * for await (const text of result.textStream) process.stdout.write(text);
 * const { messages } = await turn.settled;
 * history.push(...messages);
 * ```
 */
export function createStoppableTurn<T extends Tools, Message extends AiSdkMessage>(
  given: StoppableTurnOptions<T, Message>,
): StoppableTurn<T, Message> {
  const options = settings.readSettings<StoppableTurnOptions<T, Message>>(given, toRules(given?.tools ?? {}));
  const { tools, calls, mustFinish = {}, onWait, signal } = options;
  if (options.token === undefined && signal === undefined)
    throw new SettingsError('token', 'a stoppable turn needs a token or a signal; without one it cannot be stopped');
  const messages = closeCalls(options.history, { calls, keepsNextIds: true });
  // A caller may add to its list while the turn runs.
  const history = [...options.history];
  const isElsewhere = (name: string): boolean => Object.hasOwn(tools, name) && tools[name]!.execute === undefined;
  // The turn's own token can be disposed, whatever its source was.
  const about = { parent: options.token, name: 'turn' };
  const token = signal === undefined ? new CancellationToken(about) : CancellationToken.from(signal, about);
  const turn = new Turn(token, calls, (added) => closeTurn(added, { calls, history, isElsewhere }));
  const bounds = Object.entries(mustFinish as Readonly<Record<string, { readonly timeoutMs: number }>>).map(
    ([name, { timeoutMs }]) => [name, { whenCancelled: 'finish', timeoutMs }] as const,
  );
  const guarding = {
    calls,
    ...(onWait && { onWait }),
    onCall: (record: CallRecord, input: unknown) => turn.watchCall(record, input),
    token,
  };
  const guardAll = <Given extends Tools>(given: Given): Given =>
    guardTools(given, {
      ...guarding,
      bounds: Object.fromEntries(bounds.filter(([name]) => Object.hasOwn(given, name))),
    });
  const isOver = (steps: readonly unknown[], hasRule = false): boolean =>
    token.isCancelled || steps.length >= (options.maxSteps ?? (hasRule ? Infinity : MAX_STEPS));
  const spread = {
    messages,
    tools: guardAll(tools),
    abortSignal: token.signal,
    stopWhen: ({ steps }: { readonly steps: readonly unknown[] }) => isOver(steps),
    prepareStep: <M extends AiSdkMessage>({ messages: sent }: { readonly messages: readonly M[] }) => {
      // The model is asked next: under a drain it must not be, and by now no call of the step before is running.
      turn.endDrain();
      turn.added.begin(sent, messages.at(-1));
      return { messages: closeCalls(sent, { calls }) };
    },
    onStepFinish: (step: FinishedStep) => turn.added.finish(step),
    providerOptions: { openai: { store: false as const }, azure: { store: false as const } },
    experimental_transform: () => turn.watchStream(),
  };
  const close = (sent: readonly AiSdkMessage[]): AiSdkMessage[] => closeCalls(sent, { calls });
  const parts = { own: spread, token, isOver, close, guard: guardAll };
  return Object.defineProperties(spread, {
    settled: { value: turn.settled },
    with: { value: (given: LoopOptions) => composeOptions(given, parts) },
  }) as unknown as StoppableTurn<T, Message>;
}

function toRules(tools: object): settings.Rules<StoppableTurnOptions<Tools, AiSdkMessage>> {
  return {
    history: settings.required(settings.rule('a list of messages', settings.isList)),
    tools: settings.required(settings.rule('tools by name', settings.isObject)),
    calls: settings.required(settings.having('call records, as from createCallRecords', 'records')),
    mustFinish: mustFinishRule(tools),
    maxSteps: settings.count({ orInfinity: true }),
    onWait: settings.callback,
    ...SOURCE_RULES,
  };
}
