import { useStoppableChat } from '@whoa/server/client';
import { type SubmitEvent, useState } from 'react';
import { createRoot } from 'react-dom/client';

const id = location.hash.slice(1) || 'first';

function Chat({ loaded }: { loaded: ReturnType<typeof useStoppableChat>['messages'] }) {
  const { messages, sendMessage, stop, status, isStopping } = useStoppableChat({ id, messages: loaded });
  const [text, setText] = useState('');
  const send = (event: SubmitEvent) => {
    event.preventDefault();
    setText('');
    sendMessage({ text }).catch(console.error);
  };
  return (
    <form onSubmit={send}>
      {messages.map(({ id: key, role, parts }) => (
        <p key={key} className={role}>
          {parts.map((part) => (part.type === 'text' ? part.text : ''))}
          {parts.some(({ type }) => type === 'data-stop-report') && ' (stopped)'}
        </p>
      ))}
      <input value={text} onChange={(event) => setText(event.target.value)} />
      {status === 'submitted' || status === 'streaming' ? (
        <button type="button" disabled={isStopping} onClick={() => void stop()}>
          Stop
        </button>
      ) : (
        <button type="submit">Send</button>
      )}
    </form>
  );
}

function Login() {
  return (
    <form method="post" action="/login">
      <input name="user" />
      <button type="submit">Log in</button>
    </form>
  );
}

const response = await fetch(`/api/chat/${id}/messages`);
const loaded = response.ok ? ((await response.json()) as []) : undefined;
createRoot(document.getElementById('root')!).render(loaded ? <Chat loaded={loaded} /> : <Login />);
