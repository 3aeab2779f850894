import { cookies, headers } from 'next/headers';
import { redirect } from 'next/navigation';
import { logIn, SESSION_SECONDS } from '@/lib/login';

async function enter(form: FormData): Promise<void> {
  'use server';
  const session = await logIn(String(form.get('user')), String(form.get('password')));
  if (session === undefined) redirect('/login?wrong=1');
  // Without TLS a browser keeps no `secure` cookie.
  const secure = (await headers()).get('x-forwarded-proto') === 'https';
  (await cookies()).set('session', session, { httpOnly: true, sameSite: 'lax', secure, maxAge: SESSION_SECONDS });
  redirect('/');
}

export default async function Page({ searchParams }: { searchParams: Promise<{ wrong?: string }> }) {
  const { wrong } = await searchParams;
  return (
    <main>
      <form className="login" action={enter}>
        <h1>Shop</h1>
        {wrong && <p role="alert">That is not the password.</p>}
        <input name="user" placeholder="Name" aria-label="Name" autoComplete="username" maxLength={100} required />
        <input
          name="password"
          type="password"
          placeholder="Password"
          aria-label="Password"
          autoComplete="current-password"
          maxLength={200}
          required
        />
        <button className="main" type="submit">
          Log in
        </button>
      </form>
    </main>
  );
}
