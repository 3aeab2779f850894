import { createTaskClient, TaskApiError, type TaskClient } from '@whoa/server/task-client';

/** Who uses the page, and what they may do. */
export interface Me {
  readonly name: string;
  readonly tenant: string;
  readonly rights: readonly string[];
  /** The agents that can be started. Left out where any can. */
  readonly agents?: readonly string[];
  /** The kind of store: `postgres`. */
  readonly store: string;
}

/** Thrown when the page is not logged in. */
export class LoggedOutError extends Error {
  override readonly name = 'LoggedOutError';
}

/** Returns who is logged in. A code in the fragment of the address is exchanged first, and taken out of the address. */
export async function openSession(): Promise<Me> {
  const code = /^#code=([\w-]+)$/.exec(location.hash)?.[1];
  if (code !== undefined) {
    history.replaceState(null, '', location.pathname + location.search);
    await logIn({ code });
  }
  return readMe();
}

/** Exchanges a code or a token for a cookie that scripts cannot read. */
export async function logIn(secret: { readonly code: string } | { readonly token: string }): Promise<void> {
  const response = await fetch('/v1/login', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(secret),
  });
  if (!response.ok) throw new LoggedOutError(await readMessage(response));
}

export async function logOut(): Promise<void> {
  await fetch('/v1/logout', { method: 'POST' });
  location.assign('/console/');
}

/** A client of the tasks of one tenant. */
export function clientFor(me: Me, tenant: string | undefined): TaskClient {
  return createTaskClient({ url: '', ...(tenant !== undefined && tenant !== me.tenant && { tenant }) });
}

/** What went wrong, as a sentence and a code. */
export function describeError(error: unknown): { readonly code: string; readonly message: string } {
  if (error instanceof TaskApiError) return { code: error.code, message: error.message };
  const message =
    error instanceof TypeError ? 'The server cannot be reached' : String((error as Error)?.message ?? error);
  return { code: 'unreachable', message };
}

/** Whether an error means that the page has to log in again. */
export function isLoggedOut(error: unknown): boolean {
  return error instanceof TaskApiError && error.status === 401;
}

async function readMe(): Promise<Me> {
  const response = await fetch('/v1/me');
  if (response.status === 401) throw new LoggedOutError('');
  if (!response.ok) throw new Error(await readMessage(response));
  return (await response.json()) as Me;
}

async function readMessage(response: Response): Promise<string> {
  const body = (await response.json().catch(() => ({}))) as { error?: { message?: string } };
  return body.error?.message ?? `The server answered ${response.status}`;
}
