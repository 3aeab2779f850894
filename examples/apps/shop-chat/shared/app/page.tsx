import { randomUUID } from 'node:crypto';
import { listChats } from '@/lib/chats';
import { currentUser } from '@/lib/login';

export default async function Page() {
  const user = await currentUser();
  return (
    <main>
      <h1>Hello {user}</h1>
      <a href={`/chat/${randomUUID()}`}>New chat</a>
      <ul>
        {listChats(user).map(({ id, title }) => (
          <li key={id}>
            <a href={`/chat/${id}`}>{title}</a>
          </li>
        ))}
      </ul>
    </main>
  );
}
