import { randomUUID } from 'node:crypto';
import type { UIMessage, UIMessageChunk } from 'ai';
import type { Adapter } from '../adapter.ts';
import type { TurnLog } from '../turn-log.ts';
import { loadLibrary } from './load-library.ts';
import { createStreamAdapter, type StreamClient, type StreamServerOptions } from './streams.ts';

/**
 * Checks a chat route of the AI SDK, as `useChat` uses it.
 *
 * @returns The adapter, for `runChecks`.
 */
export function createChatAdapter(options: StreamServerOptions): Adapter {
  return createStreamAdapter('chat', load, options);
}

async function load({ url: api, headers }: { url: string; headers: Record<string, string> }) {
  const { DefaultChatTransport, readUIMessageStream } = await loadLibrary('ai', () => import('ai'));
  const transport = new DefaultChatTransport<UIMessage>({ api, headers });
  return (): StreamClient => {
    const id = randomUUID();
    /** Those that were shown. */
    let messages: UIMessage[] = [];
    return {
      id,
      async send(prompt, turn, abortSignal) {
        messages = [...messages, { id: randomUUID(), role: 'user', parts: [{ type: 'text', text: prompt }] }];
        const chunks = await transport.sendMessages({
          trigger: 'submit-message',
          chatId: id,
          messageId: undefined,
          messages,
          abortSignal,
        });
        const recorder = recordChunks(turn);
        const stream = chunks.pipeThrough(
          new TransformStream({
            transform(chunk, controller) {
              recorder.add(chunk);
              controller.enqueue(chunk);
            },
          }),
        );
        for await (const message of readUIMessageStream<UIMessage>({ stream, terminateOnError: true }))
          messages = withMessage(messages, message);
        recorder.close();
      },
    };
  };
}

/** Adds a message, or replaces it by what has come of it since. */
function withMessage(messages: UIMessage[], message: UIMessage): UIMessage[] {
  const at = messages.findIndex(({ id }) => id === message.id);
  return at === -1 ? [...messages, message] : messages.with(at, message);
}

/** Reads what a UI message stream says about a turn. Nothing may follow `finish` and `abort`; an `error` may be followed by `finish`. */
function recordChunks(turn: TurnLog): { add(chunk: UIMessageChunk): void; close(): void } {
  let failure: string | undefined;
  return {
    add(chunk) {
      if (chunk.type === 'text-delta') turn.record({ what: 'text', text: chunk.delta });
      else if (chunk.type === 'abort')
        turn.end('cancelled', `abort${chunk.reason === undefined ? '' : ` (${chunk.reason})`}`);
      else if (chunk.type === 'error') failure = chunk.errorText;
      else if (chunk.type === 'finish')
        turn.end(failure === undefined ? 'completed' : 'error', failure ?? `finish ${chunk.finishReason ?? ''}`.trim());
      else if ('toolCallId' in chunk) recordCall(turn, chunk.toolCallId, chunk);
      else turn.record({ what: 'other', detail: chunk.type });
    },
    close() {
      if (turn.hasEnded) return;
      if (failure === undefined) turn.end('gone', 'the stream ended without finish or abort');
      else turn.end('error', failure);
    },
  };
}

const ENDS_A_CALL = ['tool-output-available', 'tool-output-error', 'tool-output-denied', 'tool-input-error'];

function recordCall(turn: TurnLog, id: string, chunk: UIMessageChunk): void {
  const isPreliminary = 'preliminary' in chunk && chunk.preliminary === true;
  const isOpen = !ENDS_A_CALL.includes(chunk.type) || isPreliminary;
  turn.record({ what: 'call', id, isOpen, detail: chunk.type });
}
