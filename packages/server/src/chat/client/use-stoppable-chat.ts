import { type UIMessage, useChat } from '@ai-sdk/react';
import { useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore } from 'react';
import type { StopOptions, StopReceipt } from './chat-stop.ts';
import { type ChatState, isVisible, onVisibility } from './chat-watch.ts';
import { isStop } from './command.ts';
import type { PendingCommand } from './outbox.ts';
import { ChangedReplyError } from './shown-chunks.ts';
import { StoppableChatTransport } from './stoppable-chat-transport.ts';
import { type ChatOptions, type OnToolCall, usePageTools } from './use-page-tools.ts';
import { readShown, useSending } from './use-sending.ts';
import { useServerMessages } from './use-server-messages.ts';
import { useStop } from './use-stop.ts';
import { findWaiting } from './waiting-message.ts';

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
  const chat = useChat<Message>({
    resume: true,
    ...rest,
    ...useQuietChanges(rest),
    ...withSignal,
    transport,
  } as ChatOptions<Message>);
  const { stop: stopReading, setMessages, resumeStream } = chat;
  const isChanged = chat.error instanceof ChangedReplyError;
  const status = isChanged ? 'submitted' : chat.status;
  const [refusal, setRefusal] = useState<Error>();
  const onRefused = useCallback((error: unknown) => setRefusal(error as Error), []);
  const refresh = useServerMessages({ id: rest.id, transport, setMessages, resumeStream, onRefused });
  const connection = useConnection(rest.id, transport);
  // What the page shows is no longer what the reply is: it is read again from its start.
  useEffect(() => {
    if (isChanged) resumeStream().catch(() => {});
  }, [isChanged, resumeStream]);
  const waiting = findWaiting(chat.messages.at(-1));
  const parts = { id: rest.id, transport, resumeStream, refresh };
  const { stop, isStopping, turns } = useStop({ ...parts, stopReading, waiting, abortInPage });
  const isIdle = status !== 'submitted' && status !== 'streaming' && !isStopping;
  useWatch(rest.resume !== false, { ...parts, isIdle, setMessages });
  useEffect(
    () => transport.onOtherTab(rest.id, (event) => event.type === 'stopping' && abortInPage(event.reason)),
    [transport, rest.id, abortInPage],
  );
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
  const text = useSyncExternalStore(
    subscribe,
    () => JSON.stringify([transport.isReconnecting(id), transport.pending(id)]),
    () => '[false,[]]',
  );
  const [isReconnecting, pending] = useMemo(() => JSON.parse(text) as [boolean, readonly PendingCommand[]], [text]);
  const { retryNow, giveUp } = transport;
  return { isReconnecting, isSending: pending.some((command) => !isStop(command)), pending, retryNow, giveUp };
}

interface WatchParts<Message extends UIMessage>
  extends Pick<ReturnType<typeof useChat<Message>>, 'setMessages' | 'resumeStream'> {
  readonly id: string;
  readonly transport: StoppableChatTransport<Message>;
  readonly isIdle: boolean;
  readonly refresh: () => Promise<void>;
}

/** Shows what the server says about the chat while somebody looks, and reads a reply that others asked for or continued. */
function useWatch<Message extends UIMessage>(isOn: boolean, parts: WatchParts<Message>): void {
  const { id, transport, isIdle, refresh, resumeStream, setMessages } = parts;
  const [state, setState] = useState<ChatState>();
  /** A reply that cannot be read is not asked for again and again. */
  const resumed = useRef<ChatState>(undefined);
  useEffect(() => {
    if (!isOn) return undefined;
    const leave = transport.watch(id, setState);
    // A tab that does not watch itself is told only what changes.
    refresh().catch(() => {});
    return leave;
  }, [isOn, transport, id, refresh]);
  const isSeen = useSyncExternalStore(onVisibility, isVisible, isVisible);
  useEffect(() => {
    if (state === undefined || !isSeen) return undefined;
    let isOver = false;
    const show = async (): Promise<void> => {
      if (!transport.isShown(id, state)) await refresh();
      if (isOver || !isIdle || resumed.current === state) return;
      if (!transport.isMissed(id, state, readShown(setMessages).at(-1))) return;
      resumed.current = state;
      // Someone else has asked for it, and runs its tools.
      transport.setOwn(id);
      await resumeStream();
    };
    show().catch(() => {});
    return () => void (isOver = true);
  }, [transport, id, state, isSeen, isIdle, refresh, resumeStream, setMessages]);
}

type Listeners<Message extends UIMessage> = Pick<ChatOptions<Message>, 'onError' | 'onFinish'>;

/** A reply that is read again from its start has neither failed nor finished. */
function useQuietChanges<Message extends UIMessage>({ onError, onFinish }: Listeners<Message>): Listeners<Message> {
  const isChanged = useRef(false);
  return {
    onError(error) {
      isChanged.current = error instanceof ChangedReplyError;
      if (!isChanged.current) onError?.(error);
    },
    onFinish(end) {
      if (!isChanged.current) onFinish?.(end);
      isChanged.current = false;
    },
  };
}
