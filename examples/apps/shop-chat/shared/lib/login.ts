// Users and their sessions.
import { randomBytes, randomUUID, scryptSync, timingSafeEqual } from 'node:crypto';
import { cookies } from 'next/headers';
import { redirect } from 'next/navigation';
import { db } from './db';

/** Logs a user in. The first login registers the name, with two orders to talk about. Returns the id of a session. */
export function logIn(name: string, password: string): string | undefined {
  const user = db.prepare('SELECT password FROM users WHERE name = ?').get(name);
  if (user === undefined) register(name, password);
  else if (!isPassword(password, String(user['password']))) return undefined;
  const id = randomUUID();
  db.prepare('INSERT INTO sessions VALUES (?, ?)').run(id, name);
  return id;
}

/** Returns the user of a request, or `undefined`. */
export function findUser(request: Request): string | undefined {
  return userOfSession(/(?:^|; )session=([\w-]+)/.exec(request.headers.get('cookie') ?? '')?.[1]);
}

/** Returns the user of the current page. Without one, redirects to the login. */
export async function currentUser(): Promise<string> {
  return userOfSession((await cookies()).get('session')?.value) ?? redirect('/login');
}

function userOfSession(id: string | undefined): string | undefined {
  const session = db.prepare('SELECT user FROM sessions WHERE id = ?').get(id ?? '');
  return session && String(session['user']);
}

function register(name: string, password: string): void {
  const salt = randomBytes(16).toString('hex');
  const hash = scryptSync(password, salt, 32).toString('hex');
  db.prepare('INSERT INTO users VALUES (?, ?)').run(name, `${salt}:${hash}`);
  const order = db.prepare("INSERT INTO orders (owner, item, state) VALUES (?, ?, 'paid')");
  for (const item of ['lamp', 'chair']) order.run(name, item);
}

function isPassword(given: string, kept: string): boolean {
  const [salt = '', hash = ''] = kept.split(':');
  return timingSafeEqual(scryptSync(given, salt, 32), Buffer.from(hash, 'hex'));
}
