import type { UIMessage, useChat } from '@ai-sdk/react';
import type { FileUIPart } from 'ai';
import { useMemo, useRef } from 'react';
import type { StoppableChatTransport } from './stoppable-chat-transport.ts';
import { isOpen } from './waiting-message.ts';

type SdkChat<Message extends UIMessage> = ReturnType<typeof useChat<Message>>;

type Sending<Message extends UIMessage> = Pick<
  SdkChat<Message>,
  'sendMessage' | 'regenerate' | 'addToolApprovalResponse' | 'addToolOutput'
>;

/** Counts messages and stops: a stop must not end the reading of a message that came after it. */
export interface TurnCounts {
  sent: number;
  stops: number;
  stopping: number;
}

interface SendParts<Message extends UIMessage> {
  readonly id: string;
  readonly transport: StoppableChatTransport<Message>;
  readonly turns: TurnCounts;
  readonly onSend: () => void;
}

/** What a user sends. Each answer goes to the server when it is given. */
export function useSending<Message extends UIMessage>(
  chat: SdkChat<Message>,
  { id, transport, turns, onSend }: SendParts<Message>,
): Sending<Message> {
  const { setMessages, resumeStream, sendMessage: say, regenerate, stop: stopReading } = chat;
  const { addToolApprovalResponse: approve, addToolOutput: addOutput } = chat;
  const options = useRef({ onSend });
  options.current = { onSend };
  return useMemo(() => {
    const read = (): readonly Message[] => readShown(setMessages);
    const readOn = (message: Message): Promise<void> => {
      transport.setPartial(id, message.id);
      return resumeStream();
    };
    /** The SDK sends answers too, when nothing is open any more and it sends by itself. */
    const sendAnswers = async (find: (part: Message['parts'][number]) => boolean): Promise<void> => {
      const message = read().findLast(({ parts }) => parts.some(find));
      if (message === undefined || !(await transport.answer(id, message))) return;
      if (!message.parts.some(isOpen) && !transport.isReading(id)) await readOn(message);
    };
    return {
      async sendMessage(message, more) {
        options.current.onSend();
        const last = read().at(-1);
        // Its answers were sent when they were given.
        if (message === undefined && last?.role === 'assistant' && transport.isSent(last)) return readOn(last);
        turns.sent++;
        const { stops } = turns;
        const files = message && 'files' in message ? message.files : undefined;
        // A list of files takes the browser a while; without one the message is sent immediately, so that a stop knows it.
        const parts = isList(files) ? await Promise.all([...files].map(toPart)) : files;
        const whole = message && withParts(message, parts);
        if (turns.stopping > 0 || message?.messageId !== undefined) await stopReading();
        return turns.stops === stops ? say(whole, more) : undefined;
      },
      async regenerate(more) {
        options.current.onSend();
        turns.sent++;
        // What is replaced must not be written any more.
        const { stops } = turns;
        await stopReading();
        return turns.stops === stops ? regenerate(more) : undefined;
      },
      async addToolApprovalResponse(given) {
        options.current.onSend();
        await approve(given);
        // Refusals are shown by whoever listens to the transport.
        sendAnswers((part) => 'approval' in part && part.approval?.id === given.id).catch(() => {});
      },
      async addToolOutput(given) {
        options.current.onSend();
        await addOutput(given);
        sendAnswers((part) => 'toolCallId' in part && part.toolCallId === given.toolCallId).catch(() => {});
      },
    } satisfies Sending<Message>;
  }, [id, transport, turns, setMessages, resumeStream, say, regenerate, stopReading, approve, addOutput]);
}

type Files = InstanceType<typeof FileList>;

const isList = (files: FileUIPart[] | Files | undefined): files is Files =>
  files !== undefined && !Array.isArray(files);

function toPart(file: Files[number]): Promise<FileUIPart> {
  return new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () =>
      done({ type: 'file', mediaType: file.type, filename: file.name, url: reader.result as string });
    reader.onerror = () => failed(reader.error);
    reader.readAsDataURL(file);
  });
}

function withParts<Said extends object>(message: Said, files: readonly FileUIPart[] = []): Said {
  if (!('text' in message || 'files' in message)) return message;
  const { text, files: _, ...rest } = message as { text?: string; files?: unknown };
  const words = text === undefined ? [] : [{ type: 'text', text }];
  return { ...rest, parts: [...files, ...words] } as unknown as Said;
}

/** Returns what the page shows now, which a render may not have. */
export function readShown<Message extends UIMessage>(setMessages: SdkChat<Message>['setMessages']): readonly Message[] {
  let now: readonly Message[] = [];
  setMessages((shown) => {
    now = shown;
    return shown;
  });
  return now;
}
