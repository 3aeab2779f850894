// A page with one chat, as people build them. The tests use it through properties of the window.
import { type UIMessage, useChat } from '@ai-sdk/react';
import { useStoppableChat } from '@whoa/server/client';
import { StoppableChatTransport } from '@whoa/server/transport';
import {
  isToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
} from 'ai';
import { createElement as h, StrictMode, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { AbortDrivenTransport } from './abort-driven-transport.ts';
import { type OtherChat, useAgUiChat, useTaskChat } from './other-chats.ts';

type Command = Parameters<Parameters<StoppableChatTransport['onSettled']>[0]>[0]['command'];

interface Finish {
  readonly isAbort: boolean;
  readonly isDisconnect?: boolean;
  readonly isError: boolean;
}

export interface ChatWindow {
  chat: Pick<
    ReturnType<typeof useStoppableChat>,
    | 'sendMessage'
    | 'stop'
    | 'resumeStream'
    | 'regenerate'
    | 'addToolApprovalResponse'
    | 'addToolOutput'
    | 'messages'
    | 'pending'
    | 'giveUp'
    | 'status'
    | 'error'
  >;
  /** Called with each command that the user has given, by a test that wants to know. */
  noteGiven?: (command: Command) => unknown;
  /** Called with each command that the server has acknowledged or refused. */
  noteSettled?: (command: Command, error: string | undefined) => unknown;
  /** The results of the tools that run in the page. */
  inPage: string[];
  finishes: Finish[];
  errors: string[];
  /** Shows another chat, or none. */
  route: (id: string | undefined) => Promise<void>;
}

const page = window as unknown as ChatWindow;
page.finishes = [];
page.errors = [];
page.inPage = [];

const asked = new URLSearchParams(location.search);
const firstId = asked.get('id') ?? 'c';
const shown = new Map<string, UIMessage[]>();
/** Tells a test what is given. A page that is loaded again gives nothing a second time. */
class NotingTransport extends StoppableChatTransport {
  constructor() {
    super({ api: '/api/chat' });
    const { outbox } = this.commands;
    const add = outbox.add.bind(outbox);
    outbox.add = (command) => {
      page.noteGiven?.(command);
      return add(command);
    };
  }
}

const stoppable = new NotingTransport();
const SETTLED = 'settled ';
stoppable.onSettled(({ command, error }) => {
  if (page.noteSettled === undefined) return;
  const message = error === undefined ? undefined : (error as Error).message;
  // A page that is loaded again right now tells it then.
  sessionStorage.setItem(`${SETTLED}${command.id}`, JSON.stringify([command, message]));
  page.noteSettled(command, message);
});
for (const key of Object.keys(sessionStorage).filter((one) => one.startsWith(SETTLED)))
  page.noteSettled?.(...(JSON.parse(sessionStorage.getItem(key)!) as [Command, string | undefined]));
const Shown = asked.has('ag-ui') ? AgUi : asked.has('tasks') ? Tasks : asked.has('naive') ? Naive : Stoppable;
const naive = new AbortDrivenTransport({ api: '/api/chat' });

async function load(id: string): Promise<void> {
  shown.set(id, (await (await fetch(`/api/chat/${id}/messages`)).json()) as UIMessage[]);
}

function options(id: string) {
  return {
    id,
    resume: true,
    messages: shown.get(id) ?? [],
    onFinish: ({ isAbort, isDisconnect, isError }: Required<Finish>) =>
      page.finishes.push({ isAbort, isDisconnect, isError }),
    onError: (error: Error) => page.errors.push(`${error.name}: ${error.message}`),
  };
}

function Stoppable({ id }: { id: string }) {
  const chat = useStoppableChat({
    ...options(id),
    transport: stoppable,
    sendAutomaticallyWhen: (state) =>
      lastAssistantMessageIsCompleteWithApprovalResponses(state) || lastAssistantMessageIsCompleteWithToolCalls(state),
    onToolCall({ toolCall: { toolName }, signal }) {
      page.inPage.push(`${toolName} started`);
      signal.addEventListener('abort', () => page.inPage.push(`${toolName} stopped: ${(signal.reason as Error).name}`));
    },
  });
  return h(Chat, chat);
}

function Naive({ id }: { id: string }) {
  return h(Chat, useChat({ ...options(id), transport: naive }));
}

const noteFinish = (end: Finish): void => void page.finishes.push(end);

function AgUi({ id }: { id: string }) {
  return h(Chat, useAgUiChat(id, noteFinish));
}

function Tasks({ id }: { id: string }) {
  return h(Chat, useTaskChat(id, noteFinish));
}

type Shown =
  | (Pick<ReturnType<typeof useChat>, 'messages' | 'status' | 'sendMessage'> & {
      readonly stop: () => Promise<unknown>;
      readonly isReconnecting?: boolean;
      readonly isStopping?: boolean;
    })
  | OtherChat;

function Chat(chat: Shown) {
  page.chat = chat as unknown as ChatWindow['chat'];
  return h(
    'main',
    null,
    h('output', { id: 'status' }, chat.status),
    'isReconnecting' in chat && chat.isReconnecting && h('output', { id: 'reconnecting' }),
    'isStopping' in chat && chat.isStopping && h('output', { id: 'stopping' }),
    chat.messages.map(({ id, role, parts }) =>
      h('p', { key: id, className: role }, parts.map((part) => (part.type === 'text' ? part.text : '')).join('')),
    ),
    chat.messages.flatMap(({ id, parts }) =>
      parts
        .filter((part) => part.type === 'data-stop-report')
        .map((part) => h('footer', { key: id }, JSON.stringify(part))),
    ),
    chat.messages.flatMap(({ parts }) =>
      (parts as UIMessage['parts'])
        .filter(isToolUIPart)
        .map(({ toolCallId, state }) => h('code', { key: toolCallId }, state)),
    ),
    h('button', { type: 'button', onClick: () => void chat.stop() }, 'Stop'),
  );
}

function App() {
  const [id, setId] = useState<string | undefined>(firstId);
  page.route = async (next) => {
    if (next !== undefined) await load(next);
    setId(next);
  };
  if (id === undefined) return h('div', { id: 'elsewhere' }, 'Elsewhere');
  return h(Shown, { id, key: undefined });
}

await load(firstId);
createRoot(document.getElementById('root')!).render(asked.has('strict') ? h(StrictMode, null, h(App)) : h(App));
