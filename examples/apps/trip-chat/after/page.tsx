import { useStoppableChat } from '@whoa/server/client';
import { type SubmitEvent, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { Message } from './message.tsx';
import { dataSchemas, metadataSchema, type TripMessage } from './messages.ts';

const id = location.hash.slice(1) || 'first';

function Chat({ loaded }: { loaded: TripMessage[] }) {
  const [notice, setNotice] = useState('');
  const { messages, sendMessage, stop, status, error } = useStoppableChat<TripMessage>({
    id,
    messages: loaded,
    messageMetadataSchema: metadataSchema,
    dataPartSchemas: dataSchemas,
    onData: ({ type, data }) => type === 'data-notice' && setNotice((data as { text: string }).text),
    onFinish: () => setNotice(''),
  });
  const send = (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const given = new FormData(event.currentTarget);
    event.currentTarget.reset();
    const parts: TripMessage['parts'] = [{ type: 'text', text: String(given.get('text')) }];
    if (given.get('city')) parts.push({ type: 'data-place', data: { city: String(given.get('city')) } });
    void sendMessage({ parts }, { body: { isBrief: given.has('brief') } });
  };
  return (
    <form onSubmit={send}>
      {messages.map((message) => (
        <Message key={message.id} message={message} />
      ))}
      <p role="status">{notice}</p>
      {error && <p role="alert">{error.message}</p>}
      <input name="text" aria-label="Message" />
      <input name="city" placeholder="Your city" />
      <label>
        <input name="brief" type="checkbox" /> Be brief
      </label>
      {status === 'submitted' || status === 'streaming' ? (
        <button key="stop" type="button" onClick={() => void stop()}>
          Stop
        </button>
      ) : (
        <button key="send" type="submit">
          Send
        </button>
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
const loaded = response.ok ? ((await response.json()) as TripMessage[]) : undefined;
createRoot(document.getElementById('root')!).render(loaded ? <Chat loaded={loaded} /> : <Login />);
