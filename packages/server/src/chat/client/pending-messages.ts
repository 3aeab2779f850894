import type { UIMessage } from 'ai';
import { isCallPart } from '../ui/call-parts.ts';
import { type Command, isStop } from './command.ts';
import { isOpen } from './waiting-message.ts';

/** What a message, an answer or a regenerate sends. */
export interface Sent<Message extends UIMessage> {
  readonly messages: Message[];
  readonly trigger: 'submit-message' | 'regenerate-message';
  readonly messageId: string | undefined;
  readonly body?: object | undefined;
  readonly metadata?: unknown;
}

/** Returns the messages of the server with what it has not acknowledged yet. */
export function withPending<Message extends UIMessage>(
  messages: readonly Message[],
  commands: readonly Command[],
): Message[] {
  return commands.reduce<Message[]>(
    (shown, command) =>
      isStop(command) || 'approval' in command.body ? shown : add(shown, command.body as Sent<Message>),
    [...messages],
  );
}

function add<Message extends UIMessage>(shown: Message[], { messages, trigger, messageId }: Sent<Message>): Message[] {
  const message = messages.find(({ id }) => id === messageId) ?? messages.at(-1)!;
  if (message.role === 'assistant' && trigger === 'submit-message')
    return shown.map((one) => (one.id === message.id ? withAnswers(one, message) : one));
  const asked = messages.at(-1)!;
  const index = shown.findIndex(({ id }) => id === asked.id);
  if (index < 0) return [...shown, asked];
  const isCut = trigger === 'regenerate-message' || messageId === asked.id;
  return isCut ? [...shown.slice(0, index), asked] : shown;
}

/** Calls that the server still shows as open have the answers of the page. */
function withAnswers<Message extends UIMessage>(message: Message, { parts: answered }: Message): Message {
  const parts = message.parts.map((part) => {
    if (!isCallPart(part) || !isOpen(part)) return part;
    return answered.find((one) => isCallPart(one) && one.toolCallId === part.toolCallId) ?? part;
  });
  return { ...message, parts };
}
