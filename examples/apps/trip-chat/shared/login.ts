// Use your own login; this one asks for no password.
const sessions = new Map<string, string>();

export function logIn(user: string): string {
  const id = crypto.randomUUID();
  sessions.set(id, user);
  return `session=${id}; Path=/; HttpOnly; SameSite=Lax`;
}

export function findUser(cookie: string | null | undefined): string | undefined {
  return sessions.get(/(?:^|; )session=([\w-]+)/.exec(cookie ?? '')?.[1] ?? '');
}
