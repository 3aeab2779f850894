import { type UIMessage, useChat } from '@ai-sdk/react';
import { useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore } from 'react';
import type { StopOptions, StopReceipt } from './chat-stop.ts';
import { isStop } from './command.ts';
import type { PendingCommand } from './outbox.ts';
import { ChangedReplyError } from './shown-chunks.ts';
import { StoppableChatTransport } from './stoppable-chat-transport.ts';
import { type ChatOptions, type OnToolCall, usePageTools } from './use-page-tools.ts';
import { useSending } from './use-sending.ts';
import { useServerMessages } from './use-server-messages.ts';
import { useStop } from './use-stop.ts';
import { findOpenQuestions, findWaiting } from './waiting-message.ts';

/** The options of `useChat`, with an `id` and the path of the chat handler. */
export type StoppableChatOptions<Message extends UIMessage> = Omit<
  ChatOptions<Message>,
  'id' | 'transport' | 'chat' | 'onToolCall'
> & {
  readonly id: string;
  /** The path of the chat handler. Defaults to `/api/chat`. */
  readonly api?: string | undefined;
  /** A transport with your own options, such as `headers`. Use it instead of `api`. */
  readonly transport?: StoppableChatTransport<Message> | undefined;
  /** As in `useChat`. `signal` fires when the user stops the chat while the tool runs in the page. */
  readonly onToolCall?: OnToolCall<Message> | undefined;
};

/** What `useChat` returns, with a `stop` that stops the run. */
export type StoppableChat<Message extends UIMessage> = Omit<ReturnType<typeof useChat<Message>>, 'stop'> & {
  /** Resolves when the stop has settled: with the calls that must finish, and their results on the page. */
  readonly stop: (options?: StopOptions) => Promise<StopReceipt<Message>>;
  /** The server has not acknowledged a message, an answer or a regenerate yet. */
  readonly isSending: boolean;
  /** A stop was sent and has not settled. */
  readonly isStopping: boolean;
  /** The connection is lost. It is opened again by itself, and nothing is missed. */
  readonly isReconnecting: boolean;
  /** What the server has not acknowledged yet. It is sent again until the server has it, also after a reload. */
  readonly pending: readonly PendingCommand[];
  /** Sends what is pending now, and not after a pause. */
  readonly retryNow: () => void;
  /** Forgets what is pending, by its id. Then the page shows what the server has. */
  readonly giveUp: (id: string) => void;
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
  const { api, transport: given, onToolCall, ...rest } = options;
  const [made] = useState(() => new StoppableChatTransport<Message>(api === undefined ? {} : { api }));
  const transport = given ?? made;
  transport.setLastMessage(rest.id, rest.messages?.at(-1)?.id);
  const { withSignal, abortInPage, runAgain } = usePageTools(onToolCall, { id: rest.id, transport });
  const failed = useRef<() => unknown>(() => {});
  const chat = useChat<Message>({
    resume: true,
    ...rest,
    ...useQuietChanges(rest, failed),
    ...withSignal,
    transport,
  } as ChatOptions<Message>);
  const { stop: stopReading, setMessages, resumeStream } = chat;
  const isChanged = chat.error instanceof ChangedReplyError;
  const status = isChanged ? 'submitted' : chat.status;
  const [refusal, setRefusal] = useState<Error>();
  const onRefused = useCallback((error: unknown) => setRefusal(error as Error), []);
  const refresh = useServerMessages({ id: rest.id, transport, setMessages, resumeStream, onRefused });
  failed.current = refresh;
  const connection = useConnection(rest.id, transport);
  // What the page shows is no longer what the reply is: it is read again from its start.
  useEffect(() => {
    if (isChanged) resumeStream().catch(() => {});
  }, [isChanged, resumeStream]);
  const waiting = findWaiting(chat.messages.at(-1));
  const parts = { id: rest.id, transport, status, resumeStream, abortInPage, refresh };
  const { stop, isStopping, turns } = useStop({ ...parts, stopReading, waiting });
  const isIdle = status !== 'submitted' && status !== 'streaming' && !isStopping;
  useAnswers(isIdle && waiting !== undefined ? chat.messages.at(-1) : undefined, { ...rest, transport, resumeStream });
  useOtherTabs(parts);
  useEffect(() => (isIdle ? runAgain(chat.messages.at(-1)) : undefined));
  const sending = useSending(chat, { id: rest.id, transport, turns, onSend: () => setRefusal(undefined) });
  const error = isChanged ? undefined : (chat.error ?? refusal);
  const shown = { status, error } as Pick<typeof chat, 'status' | 'error'>;
  const isStopPending = connection.pending.some(isStop);
  return { ...chat, ...shown, ...sending, ...connection, stop, isStopping: isStopping || isStopPending };
}

/** What a page tells its user about the connection. */
function useConnection<Message extends UIMessage>(id: string, transport: StoppableChatTransport<Message>) {
  const subscribe = useCallback((listener: () => void) => transport.onChange(listener), [transport]);
  const isReconnecting = useSyncExternalStore(
    subscribe,
    () => transport.isReconnecting(id),
    () => false,
  );
  const shown = useSyncExternalStore(
    subscribe,
    () => JSON.stringify(transport.pending(id)),
    () => '[]',
  );
  const pending = useMemo(() => JSON.parse(shown) as readonly PendingCommand[], [shown]);
  const isSending = pending.some((command) => !isStop(command));
  const retryNow = useCallback(() => transport.retryNow(), [transport]);
  const giveUp = useCallback((command: string) => transport.giveUp(command), [transport]);
  return { isReconnecting, isSending, pending, retryNow, giveUp };
}

/** Reads on when someone else has answered what this message waits for. */
function useAnswers<Message extends UIMessage>(
  message: Message | undefined,
  { id, transport, resumeStream }: Pick<TabParts<Message>, 'id' | 'transport' | 'resumeStream'>,
): void {
  const current = useRef(message);
  current.current = message;
  const open = message && [message.id, ...findOpenQuestions(message)].join();
  useEffect(() => {
    if (open === undefined) return undefined;
    const leaving = new AbortController();
    const readOn = (isAnswered: boolean) => (isAnswered && !leaving.signal.aborted ? resumeStream() : undefined);
    transport
      .waitForAnswer(id, current.current!, leaving.signal)
      .then(readOn)
      .catch(() => {});
    return () => leaving.abort();
  }, [transport, id, open, resumeStream]);
}

interface TabParts<Message extends UIMessage>
  extends Pick<ReturnType<typeof useChat<Message>>, 'status' | 'resumeStream'> {
  readonly id: string;
  readonly transport: StoppableChatTransport<Message>;
  readonly abortInPage: (reason?: string) => void;
  readonly refresh: () => Promise<void>;
}

/** Does in this tab what another one did in the same chat. */
function useOtherTabs<Message extends UIMessage>(parts: TabParts<Message>): void {
  const { id, transport, status, resumeStream, abortInPage, refresh } = parts;
  const [isSaid, setIsSaid] = useState(false);
  useEffect(
    () =>
      transport.onOtherTab(id, (event) => {
        if (event.type === 'said') setIsSaid(true);
        else if (event.type === 'stopping') abortInPage(event.reason);
        else refresh().catch(() => {});
      }),
    [transport, id, abortInPage, refresh],
  );
  // What was said in another tab is shown as soon as this one reads no other reply.
  useEffect(() => {
    if (!isSaid || status === 'submitted' || status === 'streaming') return;
    setIsSaid(false);
    refresh()
      .then(() => resumeStream())
      .catch(() => {});
  }, [isSaid, status, refresh, resumeStream]);
}

type Listeners<Message extends UIMessage> = Pick<ChatOptions<Message>, 'onError' | 'onFinish'>;

/** A reply that is read again from its start has neither failed nor finished. */
function useQuietChanges<Message extends UIMessage>(
  { onError, onFinish }: Listeners<Message>,
  failed: { readonly current: () => unknown },
): Listeners<Message> {
  const isChanged = useRef(false);
  return {
    onError(error) {
      isChanged.current = error instanceof ChangedReplyError;
      if (!isChanged.current) onError?.(error);
    },
    onFinish(end) {
      if (!isChanged.current) onFinish?.(end);
      if (!isChanged.current && end.isError) failed.current();
      isChanged.current = false;
    },
  };
}
