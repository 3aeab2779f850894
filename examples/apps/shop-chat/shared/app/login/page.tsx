import { cookies } from 'next/headers';
import { redirect } from 'next/navigation';
import { logIn } from '@/lib/login';

async function enter(form: FormData): Promise<void> {
  'use server';
  const session = logIn(String(form.get('user')), String(form.get('password')));
  if (session === undefined) redirect('/login?wrong=1');
  (await cookies()).set('session', session, { httpOnly: true, sameSite: 'lax' });
  redirect('/');
}

export default async function Page({ searchParams }: { searchParams: Promise<{ wrong?: string }> }) {
  const { wrong } = await searchParams;
  return (
    <form action={enter}>
      {wrong && <p role="alert">That is not the password.</p>}
      <input name="user" placeholder="Name" required />
      <input name="password" type="password" placeholder="Password" required />
      <button type="submit">Log in</button>
    </form>
  );
}
