// A provider of the AI SDK that says and calls what it likes, for `ai` 5, 6 and 7, and checks each prompt it gets.
import type { VirtualClock } from '@whoa/core/testing';
import type { Dice } from './dice.ts';
import type { Found } from './found.ts';
import { wait } from './run-tools.ts';

export type Major = 5 | 6 | 7;

interface Part {
  readonly type: string;
  readonly toolCallId?: string;
  readonly providerExecuted?: boolean;
  readonly input?: unknown;
  readonly text?: string;
}

export interface PromptMessage {
  readonly role: string;
  readonly content: string | readonly Part[];
}

export interface LoopModelParts {
  readonly major: Major;
  readonly clock: VirtualClock;
  readonly dice: Dice;
  readonly found: Found;
  readonly tools: readonly string[];
  act(where: string): void;
  /** Called before a reply starts, with the signal of its request. */
  starts(what: string): void;
  /** Returns the number of a new call. */
  plan(tool: string): number;
}

const FAULTS = [
  'error',
  'throws',
  'hangs',
  'deaf',
  'cut-call',
  'bad-arguments',
  'bad-arguments',
  'bad-arguments',
  'unknown-tool',
  'no-finish',
  'same-id-as-provider',
] as const;
const BAD = ['{"n":', '[1]', '"x"', '5', 'null', ''];

/** What is wrong with the calls of a prompt or a history, if anything is. */
export function findInvalid(
  messages: readonly PromptMessage[],
  isWaiting: (id: string) => boolean = () => false,
): string | undefined {
  const open = new Set<string>();
  const seen = new Set<string>();
  for (const { role, content } of messages) {
    const parts = typeof content === 'string' ? [] : content;
    if (role === 'tool') {
      for (const { type, toolCallId } of parts)
        if (type === 'tool-result' && !open.delete(toolCallId!)) return 'a result without an open call';
      continue;
    }
    for (const id of open) if (!isWaiting(id)) return `a ${role} message while a call is open`;
    if (role !== 'assistant') continue;
    if (content.length === 0) return 'a reply without content';
    const provided = new Set(parts.flatMap((part) => (part.type === 'tool-result' ? [part.toolCallId!] : [])));
    for (const { type, toolCallId: id = '', input, providerExecuted } of parts) {
      if (type !== 'tool-call') continue;
      if (typeof input !== 'object' || input === null || Array.isArray(input))
        return 'arguments that are not a JSON object';
      if (providerExecuted && !provided.has(id)) return 'a call of the provider without its result';
      if (providerExecuted) continue;
      if (seen.has(id)) return 'two calls with one id';
      if (!/^[\w-]{1,40}$/.test(id)) return 'an id that a provider refuses';
      seen.add(id);
      open.add(id);
    }
  }
  for (const id of open) if (!isWaiting(id)) return 'an open call at its end';
  return undefined;
}

/** Creates the model. */
export function createLoopModel(parts: LoopModelParts): object {
  const { major, clock, dice, found } = parts;
  const reason = (unified: string): unknown => (major === 5 ? unified : { unified, raw: unified });
  const counted = { total: 5, noCache: 5, cacheRead: 0, cacheWrite: 0 };
  const usage =
    major === 5
      ? { inputTokens: 5, outputTokens: 5, totalTokens: 10 }
      : { inputTokens: counted, outputTokens: { total: 5, text: 5, reasoning: 0 } };

  async function* reply(signal: AbortSignal | undefined): AsyncGenerator<object> {
    const fault = dice.chance(0.3) ? dice.pick(FAULTS) : undefined;
    if (fault !== undefined) found.count(fault);
    yield { type: 'stream-start', warnings: [] };
    yield { type: 'text-start', id: 't' };
    for (let words = 1 + dice.below(3); words > 0; words--) {
      await wait(clock, dice.pick([0, 1, 20]), signal);
      parts.act('text');
      yield { type: 'text-delta', id: 't', delta: `word ${dice.below(1e6)} ` };
    }
    yield { type: 'text-end', id: 't' };
    if (fault === 'error') yield { type: 'error', error: new Error('the provider failed') };
    if (fault === 'throws') throw new Error('the stream broke');
    if (fault === 'hangs') await wait(clock, 1e6, signal);
    if (fault === 'deaf')
      await new Promise((resolve) =>
        signal?.addEventListener('abort', () => void clock.setTimer(500, () => resolve(undefined))),
      );
    let calls = 0;
    if (fault === 'same-id-as-provider') {
      const search = { toolCallId: 'shared', toolName: 'search' };
      yield { type: 'tool-call', ...search, input: '{}', providerExecuted: true };
      yield { type: 'tool-result', ...search, result: { found: 1 }, providerExecuted: true };
    }
    if (dice.chance(0.65))
      for (let left = 1 + dice.below(2); left > 0; left--) {
        calls++;
        const tool = fault === 'unknown-tool' ? 'invented' : dice.pick(parts.tools);
        const n = parts.plan(tool);
        const id =
          fault === 'same-id-as-provider' && left === 1
            ? 'shared'
            : dice.pick([`c${n}`, `c${n}`, `call_${left}`, `functions.${tool}:${left}`]);
        const input = fault === 'bad-arguments' ? dice.pick(BAD) : JSON.stringify({ n });
        yield { type: 'tool-input-start', id, toolName: tool };
        yield { type: 'tool-input-delta', id, delta: input.slice(0, 3) };
        if (fault === 'cut-call') await wait(clock, 1e6, signal);
        yield { type: 'tool-input-end', id };
        yield { type: 'tool-call', toolCallId: id, toolName: tool, input };
        parts.act('call');
      }
    if (fault === 'no-finish') return;
    yield { type: 'finish', finishReason: reason(calls > 0 ? 'tool-calls' : 'stop'), usage };
  }

  return {
    specificationVersion: { 5: 'v2', 6: 'v3', 7: 'v4' }[major],
    provider: 'anthropic.messages',
    modelId: 'random',
    supportedUrls: {},
    doStream({
      prompt,
      abortSignal,
    }: {
      readonly prompt: readonly PromptMessage[];
      readonly abortSignal?: AbortSignal;
    }) {
      if (abortSignal?.aborted !== true) parts.starts('reply');
      const invalid = findInvalid(prompt);
      found.expect(invalid === undefined, `a request has ${invalid}`);
      parts.act('model');
      return Promise.resolve({ stream: ReadableStream.from(reply(abortSignal)) });
    },
  };
}
