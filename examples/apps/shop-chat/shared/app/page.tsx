import { randomUUID } from 'node:crypto';
import { cookies } from 'next/headers';
import { redirect } from 'next/navigation';
import { listChats } from '@/lib/chats';
import { currentUser, endSession } from '@/lib/login';

async function leave(): Promise<void> {
  'use server';
  const jar = await cookies();
  endSession(jar.get('session')?.value);
  jar.delete('session');
  redirect('/login');
}

export default async function Page() {
  const user = await currentUser();
  const chats = listChats(user);
  return (
    <main>
      <header>
        <h1>Hello {user}</h1>
        <form action={leave}>
          <button type="submit">Log out</button>
        </form>
      </header>
      <div>
        <a className="button" href={`/chat/${randomUUID()}`}>
          New chat
        </a>
      </div>
      {chats.length === 0 && <p className="empty">You have no chats yet.</p>}
      <ul>
        {chats.map(({ id, title }) => (
          <li key={id}>
            <a href={`/chat/${id}`}>{title}</a>
          </li>
        ))}
      </ul>
    </main>
  );
}
