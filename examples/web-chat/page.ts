// The page: npx vite examples/web-chat, while one of the servers runs.
import { useStoppableChat } from '@whoa/server/client';
import { createElement as h, type SubmitEvent, useState } from 'react';
import { createRoot } from 'react-dom/client';
import './page.css';

type Message = ReturnType<typeof useStoppableChat>['messages'][number];
type Part = Message['parts'][number];

// A chat is named in the address, so that a reload and a second tab show the same one.
const id = location.hash.slice(1) || crypto.randomUUID();
location.hash = id;
const first = (await (await fetch(`/api/chat/${id}/messages`)).json()) as Message[];

function App() {
  const { messages, sendMessage, stop, status } = useStoppableChat({ id, api: '/api/chat', messages: first });
  const [text, setText] = useState('Tell me a story');
  const isBusy = status === 'submitted' || status === 'streaming';
  const send = (event: SubmitEvent): void => {
    event.preventDefault();
    sendMessage({ text }).catch(console.error);
    setText('');
  };
  return h(
    'main',
    null,
    messages.map((message) => h('article', { key: message.id, className: message.role }, message.parts.map(showPart))),
    h(
      'form',
      { onSubmit: send },
      h('input', { value: text, onChange: (event) => setText(event.target.value), placeholder: 'Say something' }),
      isBusy
        ? h('button', { type: 'button', className: 'stop', onClick: () => void stop() }, 'Stop')
        : h('button', { type: 'submit' }, 'Send'),
    ),
  );
}

function showPart(part: Part, index: number) {
  if (part.type === 'text') return h('p', { key: index }, part.text);
  if (part.type === 'data-stop-report') return h('footer', { key: index }, 'Stopped. Nothing more is running.');
  if (!part.type.startsWith('tool-')) return null;
  const call = part as { readonly type: string; readonly state: string; readonly errorText?: string };
  return h('code', { key: index }, `${call.type.slice(5)} · ${call.errorText ?? call.state}`);
}

createRoot(document.getElementById('root')!).render(h(App));
