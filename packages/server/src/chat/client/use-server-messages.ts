import type { UIMessage, useChat } from '@ai-sdk/react';
import { useCallback, useEffect, useRef } from 'react';
import { isStop } from './command.ts';
import type { Settled } from './outbox.ts';
import { pause } from './pause.ts';
import type { StoppableChatTransport } from './stoppable-chat-transport.ts';

interface ShownChat<Message extends UIMessage>
  extends Pick<ReturnType<typeof useChat<Message>>, 'setMessages' | 'resumeStream'> {
  readonly id: string;
  readonly transport: StoppableChatTransport<Message>;
  readonly onRefused: (error: unknown) => void;
}

/** A chat that could not be read is read again, so that a refused command is not shown for good. */
const READ_AGAIN_MS = 8_000;

/** Shows what the server has: replaces everything but the reply that is streaming and what is not acknowledged yet. */
export function useServerMessages<Message extends UIMessage>({
  id,
  transport,
  setMessages,
  resumeStream,
  onRefused,
}: ShownChat<Message>): () => Promise<void> {
  const running = useRef<Promise<void>>(undefined);
  const left = useRef<AbortSignal>(undefined);
  const refresh = useCallback(async (): Promise<void> => {
    // One that has begun may not see what has changed since.
    await running.current;
    running.current ??= transport
      .readMessages(id)
      .then((messages) => setMessages((shown) => transport.toShown(id, messages, shown)))
      // What is shown stays in the meantime.
      .catch(() => {
        const signal = left.current;
        pause(READ_AGAIN_MS, signal)
          .then(() => (signal?.aborted ? undefined : refresh()))
          .catch(() => {});
      })
      .finally(() => (running.current = undefined));
    return running.current;
  }, [transport, id, setMessages]);
  const onSettled = useCallback(
    async ({ command, error }: Settled): Promise<void> => {
      if (command.chatId !== id || isStop(command) || error === undefined) return;
      onRefused(error);
      await refresh();
      // The message of an agent that waits is not among those that have ended.
      if (command.kind === 'answer' || command.kind === 'output') await resumeStream();
    },
    [id, resumeStream, refresh, onRefused],
  );
  const listener = useRef(onSettled);
  listener.current = onSettled;
  useEffect(() => {
    const leaving = new AbortController();
    left.current = leaving.signal;
    transport.open(id);
    setMessages((shown) => transport.toShown(id, shown, shown));
    const forget = transport.onSettled((settled) => void listener.current(settled).catch(() => {}));
    return () => {
      leaving.abort();
      forget();
    };
  }, [transport, id, setMessages]);
  return refresh;
}
