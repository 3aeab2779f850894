import { type UIMessage, useChat } from '@ai-sdk/react';
import { useCallback, useRef, useState } from 'react';
import type { StopOptions } from './readings.ts';
import { StoppableChatTransport } from './stoppable-chat-transport.ts';

/** How long a page keeps reading after a stop. Calls that take longer to finish are shown when it is opened again. */
const LAST_WORDS_MS = 3_000;

type ChatOptions<Message extends UIMessage> = Extract<
  NonNullable<Parameters<typeof useChat<Message>>[0]>,
  { id?: string }
>;

/** The options of `useChat`, with an `id` and the path of the chat handler. */
export type StoppableChatOptions<Message extends UIMessage> = Omit<
  ChatOptions<Message>,
  'id' | 'transport' | 'chat'
> & {
  readonly id: string;
  /** The path of the chat handler. Defaults to `/api/chat`. */
  readonly api?: string;
  /** A transport with your own options, such as `headers`. Use it instead of `api`. */
  readonly transport?: StoppableChatTransport<Message>;
};

/** What `useChat` returns, with a `stop` that stops the run. */
export type StoppableChat<Message extends UIMessage> = Omit<ReturnType<typeof useChat<Message>>, 'stop'> & {
  readonly stop: (options?: StopOptions) => Promise<void>;
};

/**
 * `useChat`, with a `stop` that stops the run and not only the reading.
 *
 * @returns What `useChat` returns, with that `stop`.
 *
 * @example
 * ```ts
 * import { useStoppableChat } from '@whoa/server/client';
 *
 * export function useSupportChat(id: string) {
 *   const { messages, sendMessage, stop, status } = useStoppableChat({ id });
 *   return { messages, ask: (text: string) => sendMessage({ text }), stop, isBusy: status === 'streaming' };
 * }
 * ```
 */
export function useStoppableChat<Message extends UIMessage = UIMessage>(
  options: StoppableChatOptions<Message>,
): StoppableChat<Message> {
  const { api, transport: given, ...rest } = options;
  const [made] = useState(() => new StoppableChatTransport<Message>(api === undefined ? {} : { api }));
  const transport = given ?? made;
  transport.shows(rest.id, rest.messages?.at(-1)?.id);
  const chat = useChat<Message>({ resume: true, ...rest, transport } as ChatOptions<Message>);
  const { stop: stopReading, sendMessage: say, status } = chat;
  // Counts messages and stops: a stop must not end the reading of a message that came after it.
  const turns = useRef({ said: 0, stopping: 0 });
  const stop = useCallback(
    async (options?: StopOptions) => {
      const { said } = turns.current;
      turns.current.stopping++;
      await transport.stop(rest.id, options);
      // Wait for the end of the stream: it contains the results of the calls and the stop report.
      if (status === 'streaming') await Promise.race([transport.ended(rest.id), delay(LAST_WORDS_MS)]);
      turns.current.stopping--;
      if (turns.current.said === said) await stopReading();
    },
    [transport, rest.id, stopReading, status],
  );
  const sendMessage: typeof say = useCallback(
    async (...message) => {
      turns.current.said++;
      if (turns.current.stopping > 0) await stopReading();
      return say(...message);
    },
    [say, stopReading],
  );
  return { ...chat, stop, sendMessage };
}

const delay = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
