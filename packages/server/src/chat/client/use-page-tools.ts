import type { UIMessage, useChat } from '@ai-sdk/react';
import { useCallback, useRef } from 'react';
import { getToolName, isCallPart } from '../ui/call-parts.ts';
import { attempt } from './command-storage.ts';
import type { StoppableChatTransport } from './stoppable-chat-transport.ts';

/** The options of `useChat` that name a chat. */
export type ChatOptions<Message extends UIMessage> = Extract<
  NonNullable<Parameters<typeof useChat<Message>>[0]>,
  { id?: string | undefined }
>;

type ToolCall<Message extends UIMessage> = Parameters<NonNullable<ChatOptions<Message>['onToolCall']>>[0];

/** Runs a tool of the page. `signal` fires when the user stops the chat. */
export type OnToolCall<Message extends UIMessage> = (
  call: ToolCall<Message> & { readonly signal: AbortSignal },
) => void | PromiseLike<void>;

interface PageTools<Message extends UIMessage> {
  readonly withSignal: { readonly onToolCall: (call: ToolCall<Message>) => void | PromiseLike<void> } | undefined;
  readonly abortInPage: (reason?: string) => void;
  /** Runs what a page that was loaded again had begun. */
  readonly runAgain: (message: Message | undefined) => void;
}

const getName = (chatId: string, toolCallId: string): string => `whoa-tool ${chatId} ${toolCallId}`;

/** Notes a call until the tab is closed. Another tab does not run it: this one holds its lock. */
function claim(name: string, run: () => void): void {
  attempt(() => sessionStorage.setItem(name, ''));
  const { locks } = globalThis.navigator ?? {};
  if (locks === undefined) run();
  const hold = (lock: unknown): Promise<void> | undefined => {
    if (lock === null) return undefined;
    run();
    return new Promise(() => {});
  };
  locks?.request(name, { ifAvailable: true }, hold).catch(() => {});
}

const wasBegun = (name: string): boolean => attempt(() => sessionStorage.getItem(name) === '') ?? false;

/** Runs the tools of the page, each call once. */
export function usePageTools<Message extends UIMessage>(
  onToolCall: OnToolCall<Message> | undefined,
  { id, transport }: { readonly id: string; readonly transport: StoppableChatTransport<Message> },
): PageTools<Message> {
  const inPage = useRef(new AbortController());
  const abortInPage = useCallback((reason = 'The chat was stopped') => {
    inPage.current.abort(new DOMException(reason, 'AbortError'));
    inPage.current = new AbortController();
  }, []);
  const calls = useRef(new Set<string>());
  const run = (call: ToolCall<Message>): ReturnType<OnToolCall<Message>> | undefined =>
    onToolCall?.({ ...call, signal: inPage.current.signal });
  const withSignal = onToolCall && {
    onToolCall(call: ToolCall<Message>) {
      const { toolCallId } = call.toolCall;
      // A message that is read again contains its calls again.
      if (!transport.isOwn(id) || calls.current.has(toolCallId)) return undefined;
      calls.current.add(toolCallId);
      claim(getName(id, toolCallId), () => {});
      return run(call);
    },
  };
  const runAgain = (message: Message | undefined): void => {
    for (const part of message?.parts ?? []) {
      if (!isCallPart(part) || part.state !== 'input-available' || part.providerExecuted) continue;
      const { toolCallId, input } = part;
      if (onToolCall === undefined || calls.current.has(toolCallId) || !wasBegun(getName(id, toolCallId))) continue;
      calls.current.add(toolCallId);
      const toolCall = { toolCallId, toolName: getToolName(part), input, dynamic: part.type === 'dynamic-tool' };
      claim(
        getName(id, toolCallId),
        () => void Promise.resolve(run({ toolCall } as ToolCall<Message>)).catch(() => {}),
      );
    }
  };
  return { withSignal, abortInPage, runAgain };
}
