import { type UIMessage, useChat } from '@ai-sdk/react';
import { useCallback, useEffect, useRef, useState, useSyncExternalStore } from 'react';
import type { StopOptions, StopReceipt } from './chat-stop.ts';
import { ChangedReplyError } from './shown-chunks.ts';
import { StoppableChatTransport } from './stoppable-chat-transport.ts';
import type { TabEvent } from './tabs.ts';
import { findOpenQuestions, findWaiting } from './waiting-message.ts';

type ChatOptions<Message extends UIMessage> = Extract<
  NonNullable<Parameters<typeof useChat<Message>>[0]>,
  { id?: string }
>;

/** The options of `useChat`, with an `id` and the path of the chat handler. */
export type StoppableChatOptions<Message extends UIMessage> = Omit<
  ChatOptions<Message>,
  'id' | 'transport' | 'chat' | 'onToolCall'
> & {
  readonly id: string;
  /** The path of the chat handler. Defaults to `/api/chat`. */
  readonly api?: string;
  /** A transport with your own options, such as `headers`. Use it instead of `api`. */
  readonly transport?: StoppableChatTransport<Message>;
  /** As in `useChat`. `signal` fires when the user stops the chat while the tool runs in the page. */
  readonly onToolCall?: (call: ToolCall<Message> & { readonly signal: AbortSignal }) => void | PromiseLike<void>;
};

type ToolCall<Message extends UIMessage> = Parameters<NonNullable<ChatOptions<Message>['onToolCall']>>[0];

/** What `useChat` returns, with a `stop` that stops the run. */
export type StoppableChat<Message extends UIMessage> = Omit<ReturnType<typeof useChat<Message>>, 'stop'> & {
  /** Resolves when the stop has settled: with the calls that must finish, and their results on the page. */
  readonly stop: (options?: StopOptions) => Promise<StopReceipt<Message>>;
  /** A stop was sent and has not settled. */
  readonly isStopping: boolean;
  /** The connection is lost. It is opened again by itself, and nothing is missed. */
  readonly isReconnecting: boolean;
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
  const { withSignal, abortInPage } = useToolsInPage(onToolCall, { id: rest.id, transport });
  const chat = useChat<Message>({
    resume: true,
    ...rest,
    ...useQuietChanges(rest),
    ...withSignal,
    transport,
  } as ChatOptions<Message>);
  const { stop: stopReading, sendMessage: say, setMessages, resumeStream } = chat;
  const isChanged = chat.error instanceof ChangedReplyError;
  const status = isChanged ? 'submitted' : chat.status;
  const isReconnecting = useSyncExternalStore(
    useCallback((listener) => transport.onConnection(listener), [transport]),
    () => transport.isReconnecting(rest.id),
    () => false,
  );
  const [stopping, setStopping] = useState(0);
  // What the page shows is no longer what the reply is: it is read again from its start.
  useEffect(() => {
    if (isChanged) resumeStream().catch(() => {});
  }, [isChanged, resumeStream]);
  const waiting = findWaiting(chat.messages.at(-1));
  const isIdle = status !== 'submitted' && status !== 'streaming' && stopping === 0;
  useAnswers(isIdle && waiting !== undefined ? chat.messages.at(-1) : undefined, { ...rest, transport, resumeStream });
  useOtherTabs({ id: rest.id, transport, status, setMessages, resumeStream, abortInPage });
  // Counts messages and stops: a stop must not end the reading of a message that came after it.
  const turns = useRef({ sent: 0, stopping: 0 });
  const stop = useCallback(
    async (options?: StopOptions) => {
      const { sent } = turns.current;
      turns.current.stopping++;
      setStopping((count) => count + 1);
      if (options?.scope !== 'background') abortInPage(options?.reason);
      const receipt = await transport.stop(rest.id, { ...options, waiting });
      const closed = receipt.message;
      if (closed) setMessages((messages) => withMessage(messages, closed));
      // Wait for the end of the stream: it contains the results of the calls and the stop report. The server bounds it.
      const isSent = receipt.result !== 'unanswered';
      if (status === 'streaming' && isSent) await transport.waitForEnd(rest.id);
      turns.current.stopping--;
      setStopping((count) => count - 1);
      if (turns.current.sent === sent && isSent) await stopReading();
      return receipt;
    },
    [transport, rest.id, stopReading, status, waiting, setMessages, abortInPage],
  );
  const sendMessage: typeof say = useCallback(
    async (...message) => {
      turns.current.sent++;
      if (turns.current.stopping > 0) await stopReading();
      return say(...message);
    },
    [say, stopReading],
  );
  const shown = { status, error: isChanged ? undefined : chat.error } as Pick<typeof chat, 'status' | 'error'>;
  return { ...chat, ...shown, stop, sendMessage, isStopping: stopping > 0, isReconnecting };
}

/** Runs the tools of the page, each call once. */
function useToolsInPage<Message extends UIMessage>(
  onToolCall: StoppableChatOptions<Message>['onToolCall'],
  { id, transport }: Pick<TabParts<Message>, 'id' | 'transport'>,
) {
  const inPage = useRef(new AbortController());
  const abortInPage = useCallback((reason = 'The chat was stopped') => {
    inPage.current.abort(new DOMException(reason, 'AbortError'));
    inPage.current = new AbortController();
  }, []);
  const calls = useRef(new Set<string>());
  const withSignal = onToolCall && {
    onToolCall(call: ToolCall<Message>) {
      const { toolCallId } = call.toolCall;
      // A message that is read again contains its calls again.
      if (transport.isPassedOn(id) || calls.current.has(toolCallId)) return undefined;
      calls.current.add(toolCallId);
      return onToolCall({ ...call, signal: inPage.current.signal });
    },
  };
  return { withSignal, abortInPage };
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
  extends Pick<ReturnType<typeof useChat<Message>>, 'status' | 'setMessages' | 'resumeStream'> {
  readonly id: string;
  readonly transport: StoppableChatTransport<Message>;
  readonly abortInPage: (reason?: string) => void;
}

/** Does in this tab what another one did in the same chat. */
function useOtherTabs<Message extends UIMessage>(parts: TabParts<Message>): void {
  const { id, transport, status, setMessages, resumeStream, abortInPage } = parts;
  const [elsewhere, setElsewhere] = useState<Extract<TabEvent<Message>, { type: 'said' }>>();
  useEffect(
    () =>
      transport.onOtherTab(id, (event) => {
        if (event.type === 'said') setElsewhere(event);
        else if (event.type === 'stopping') abortInPage(event.reason);
        else setMessages((messages) => withMessage(messages, event.message));
      }),
    [transport, id, abortInPage, setMessages],
  );
  // What was said in another tab is shown as soon as this one reads no other reply.
  useEffect(() => {
    if (elsewhere === undefined || status === 'submitted' || status === 'streaming') return;
    setElsewhere(undefined);
    const { ids, message } = elsewhere;
    setMessages((known) => ids.flatMap((id) => (id === message.id ? [message] : known.filter((one) => one.id === id))));
    resumeStream().catch(() => {});
  }, [elsewhere, status, setMessages, resumeStream]);
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

function withMessage<Message extends UIMessage>(messages: readonly Message[], changed: Message): Message[] {
  return messages.map((one) => (one.id === changed.id ? changed : one));
}
