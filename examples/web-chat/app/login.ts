const sessions = new Map<string, string>();

export function logIn(user: string): string {
  const id = crypto.randomUUID();
  sessions.set(id, user);
  return `session=${id}; Path=/; HttpOnly; SameSite=Lax`;
}

export function findUser(request: Request): string | undefined {
  return sessions.get(/session=([\w-]+)/.exec(request.headers.get('cookie') ?? '')?.[1] ?? '');
}
