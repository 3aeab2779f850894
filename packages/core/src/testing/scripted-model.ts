import type { Model, ModelPart, ModelRequest } from '../run/reply/model.ts';
import { type Clock, systemClock } from '../stop/clock.ts';
import { listOf, rule } from '../stop/settings.ts';

/**
 * One step of a scripted reply: a text (streamed word by word), a call, a pause, a failure, or any model part. A pause
 * ends early when the reply is cancelled.
 */
export type ScriptedStep =
  | string
  | { readonly call: string; readonly input?: unknown; readonly id?: string | undefined }
  | { readonly waitMs: number }
  | { readonly until: PromiseLike<unknown> }
  | { readonly fail: Error }
  | ModelPart;

/** A reply as a list of steps, or a function that creates one from the request. */
export type ScriptedReply = readonly ScriptedStep[] | ((request: ModelRequest) => readonly ScriptedStep[]);

/** A model whose replies are scripted. */
export interface ScriptedModel extends Model {
  /** Every request so far. */
  readonly requests: readonly ModelRequest[];
  /** Streams that have started and not ended. 0 when all are closed. */
  readonly open: number;
}

export interface ScriptOptions {
  readonly clock?: Clock | undefined;
  /** The pause between two words. */
  readonly wordMs?: number | undefined;
}

const REPLIES = listOf(
  rule(
    'a list of steps, or a function that returns one',
    (reply) => Array.isArray(reply) || typeof reply === 'function',
  ),
);

/**
 * Creates a model that returns scripted replies, one by one; the last is repeated. It behaves like a provider: it
 * streams, stops when its signal fires, counts tokens (one per word), and refuses requests that carry `details`.
 *
 * @returns The model, which also records its requests.
 *
 * @example
 * ```ts
 * import { createAgent } from '@whoa/core';
 * import { createScriptedModel } from '@whoa/core/testing';
 *
 * const agent = createAgent({ name: 'tested', model: createScriptedModel([['Once upon ', { waitMs: 60_000 }, 'a time']]) });
 * ```
 */
export function createScriptedModel(replies: readonly ScriptedReply[], options: ScriptOptions = {}): ScriptedModel {
  REPLIES(replies, 'replies');
  const { clock = systemClock, wordMs = 0 } = options;
  const requests: ModelRequest[] = [];
  const script = { open: 0, calls: 0 };
  return {
    name: 'scripted',
    requests,
    get open() {
      return script.open;
    },
    async *stream(request, { signal }) {
      refuseDetails(request);
      requests.push(request);
      const reply = replies[Math.min(requests.length, replies.length) - 1] ?? [];
      const pause = (ms: number): Promise<void> => pauseFor(ms, { clock, signal });
      script.open++;
      try {
        const words = { out: 0 };
        yield { type: 'usage', inputTokens: JSON.stringify(request.messages).length };
        for (const step of typeof reply === 'function' ? reply(request) : reply) {
          signal.throwIfAborted();
          if (typeof step === 'string') {
            for (const text of step.match(/\s*\S+\s*/g) ?? []) {
              if (wordMs > 0) await pause(wordMs);
              else await waitFor(Promise.resolve(), signal);
              words.out++;
              yield { type: 'text', text };
            }
          } else if ('waitMs' in step) await pause(step.waitMs);
          else if ('until' in step) await waitFor(step.until, signal);
          else if ('fail' in step) throw step.fail;
          else if ('call' in step) yield* callParts(step, `call-${++script.calls}`);
          else yield step;
        }
        yield { type: 'usage', outputTokens: words.out };
        yield { type: 'finish', stopReason: 'stop' };
      } finally {
        script.open--;
      }
    },
  };
}

function* callParts(step: Extract<ScriptedStep, { call: string }>, newId: string): Generator<ModelPart> {
  const { call: tool, input = {}, id: callId = newId } = step;
  yield { type: 'call-start', callId, tool };
  yield { type: 'call-arguments', callId, text: JSON.stringify(input) };
  yield { type: 'call-end', callId, tool, input };
}

/** Clear the timer with the pause: a cancelled reply must not keep the process alive. */
async function pauseFor(ms: number, { clock, signal }: { clock: Clock; signal: AbortSignal }): Promise<void> {
  const elapsed = Promise.withResolvers<void>();
  const timer = clock.setTimer(ms, elapsed.resolve);
  try {
    await waitFor(elapsed.promise, signal);
  } finally {
    timer[Symbol.dispose]();
  }
}

async function waitFor(until: PromiseLike<unknown>, signal: AbortSignal): Promise<void> {
  const stop = Promise.withResolvers<never>();
  const onAbort = (): void => stop.reject(signal.reason as Error);
  signal.throwIfAborted();
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    await Promise.race([until, stop.promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

function refuseDetails(request: ModelRequest): void {
  for (const message of request.messages) {
    if ('details' in message)
      throw new TypeError('A request to a model carries details; only prepareMessages may make requests');
  }
}
