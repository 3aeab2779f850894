// A page with one chat, as people build them. What the tests need to see or do hangs on the window.
import { type UIMessage, useChat } from '@ai-sdk/react';
import { StoppableChatTransport, StoppableWebSocketChatTransport, useStoppableChat } from '@whoa/server/client';
import { createElement as h, StrictMode, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { AbortDrivenTransport } from './abort-driven-transport.ts';

interface Finish {
  readonly isAbort: boolean;
  readonly isDisconnect: boolean;
  readonly isError: boolean;
}

export interface ChatWindow {
  chat: Pick<ReturnType<typeof useStoppableChat>, 'sendMessage' | 'stop' | 'resumeStream'>;
  finishes: Finish[];
  errors: string[];
  /** Shows another chat, or none. */
  route: (id: string | undefined) => Promise<void>;
}

const page = window as unknown as ChatWindow;
page.finishes = [];
page.errors = [];

const asked = new URLSearchParams(location.search);
const firstId = asked.get('id') ?? 'c';
const shown = new Map<string, UIMessage[]>();
const isNaive = asked.has('naive');
const stoppable = asked.has('socket')
  ? new StoppableWebSocketChatTransport({ url: '/api/chat' })
  : new StoppableChatTransport({ api: '/api/chat' });
const naive = new AbortDrivenTransport({ api: '/api/chat' });

async function load(id: string): Promise<void> {
  shown.set(id, (await (await fetch(`/api/chat/${id}/messages`)).json()) as UIMessage[]);
}

function options(id: string) {
  return {
    id,
    resume: true,
    messages: shown.get(id) ?? [],
    onFinish: ({ isAbort, isDisconnect, isError }: Finish) => page.finishes.push({ isAbort, isDisconnect, isError }),
    onError: (error: Error) => page.errors.push(`${error.name}: ${error.message}`),
  };
}

function Stoppable({ id }: { id: string }) {
  return h(Chat, useStoppableChat({ ...options(id), transport: stoppable }));
}

function Naive({ id }: { id: string }) {
  return h(Chat, useChat({ ...options(id), transport: naive }));
}

function Chat(chat: ReturnType<typeof useChat>) {
  page.chat = chat;
  return h(
    'main',
    null,
    h('output', { id: 'status' }, chat.status),
    chat.messages.map(({ id, role, parts }) =>
      h('p', { key: id, className: role }, parts.map((part) => (part.type === 'text' ? part.text : '')).join('')),
    ),
    chat.messages.flatMap(({ id, parts }) =>
      parts
        .filter((part) => part.type === 'data-stop-report')
        .map((part) => h('footer', { key: id }, JSON.stringify(part))),
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
  return h(isNaive ? Naive : Stoppable, { id, key: undefined });
}

await load(firstId);
createRoot(document.getElementById('root')!).render(asked.has('strict') ? h(StrictMode, null, h(App)) : h(App));
