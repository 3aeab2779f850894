import { randomUUID } from 'node:crypto';
import type { DefaultChatTransport, UIMessage } from 'ai';
import type { Adapter } from '../../adapter.ts';
import { loadLibrary } from '../load-library.ts';
import { createStreamAdapter, type Reading, type StreamClient, type StreamServerOptions } from '../streams.ts';
import { recordChunks } from './chunks.ts';

type Library = typeof import('ai');

/**
 * Checks a chat route of the AI SDK, as `useChat` uses it.
 *
 * @returns The adapter, for `runChecks`.
 */
export function createChatAdapter(options: StreamServerOptions): Adapter {
  return createStreamAdapter({ protocol: 'chat', load }, options);
}

async function load({ url: api, headers }: { url: string; headers: Record<string, string> }) {
  const library = await loadLibrary('ai', () => import('ai'));
  const transport = new library.DefaultChatTransport<UIMessage>({ api, headers });
  return () => new ChatClient(library, transport);
}

/** A chat and its messages, which are those that were shown. */
class ChatClient implements StreamClient {
  readonly id = randomUUID();
  readonly #library: Library;
  readonly #transport: DefaultChatTransport<UIMessage>;
  #messages: readonly UIMessage[] = [];

  constructor(library: Library, transport: DefaultChatTransport<UIMessage>) {
    this.#library = library;
    this.#transport = transport;
  }

  async send(prompt: string, { turn, signal }: Reading): Promise<void> {
    this.#messages = [...this.#messages, { id: randomUUID(), role: 'user', parts: [{ type: 'text', text: prompt }] }];
    const chunks = await this.#transport.sendMessages({
      trigger: 'submit-message',
      chatId: this.id,
      messageId: undefined,
      messages: [...this.#messages],
      abortSignal: signal,
    });
    const recorder = recordChunks(turn);
    const received = chunks.pipeThrough(
      new TransformStream({
        transform(chunk, controller) {
          recorder.add(chunk);
          controller.enqueue(chunk);
        },
      }),
    );
    const states = this.#library.readUIMessageStream<UIMessage>({ stream: received, terminateOnError: true });
    for await (const message of states) this.#keep(message);
    recorder.close();
  }

  #keep(message: UIMessage): void {
    const at = this.#messages.findIndex(({ id }) => id === message.id);
    this.#messages = at === -1 ? [...this.#messages, message] : this.#messages.with(at, message);
  }
}
