// Users and their sessions.
import { randomBytes, randomUUID, scrypt, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { cookies } from 'next/headers';
import { redirect } from 'next/navigation';
import { db } from './db';

/** How long a session lasts. */
export const SESSION_SECONDS = 7 * 24 * 3_600;

/** Not on the main thread: a login must not delay the replies of others. */
const hash = promisify<string, string, number, Buffer>(scrypt);

/** Logs a user in. The first login registers the name, with two orders to talk about. Returns the id of a session. */
export async function logIn(name: string, password: string): Promise<string | undefined> {
  if (findPassword(name) === undefined) await register(name, password);
  if (!(await isPassword(password, findPassword(name) ?? ''))) return undefined;
  const id = randomUUID();
  db.prepare('DELETE FROM sessions WHERE ends < ?').run(Date.now());
  db.prepare('INSERT INTO sessions VALUES (?, ?, ?)').run(id, name, Date.now() + SESSION_SECONDS * 1_000);
  return id;
}

export function endSession(id: string | undefined): void {
  db.prepare('DELETE FROM sessions WHERE id = ?').run(id ?? '');
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
  const session = db.prepare('SELECT user FROM sessions WHERE id = ? AND ends > ?').get(id ?? '', Date.now());
  return session && String(session['user']);
}

function findPassword(name: string): string | undefined {
  const user = db.prepare('SELECT password FROM users WHERE name = ?').get(name);
  return user && String(user['password']);
}

async function register(name: string, password: string): Promise<void> {
  const salt = randomBytes(16).toString('hex');
  const kept = `${salt}:${(await hash(password, salt, 32)).toString('hex')}`;
  // Of two at the same time the first one counts.
  const { changes } = db.prepare('INSERT OR IGNORE INTO users VALUES (?, ?)').run(name, kept);
  const order = db.prepare("INSERT INTO orders (owner, item, state) VALUES (?, ?, 'paid')");
  for (const item of changes === 1 ? ['lamp', 'chair'] : []) order.run(name, item);
}

async function isPassword(given: string, kept: string): Promise<boolean> {
  const [salt = '', expected = ''] = kept.split(':');
  const found = Buffer.from(expected, 'hex');
  return found.length === 32 && timingSafeEqual(await hash(given, salt, 32), found);
}
