import { createHash, randomBytes } from 'node:crypto';
import { type Clock, systemClock } from '@whoa/core/embed';
import type { Authenticate, Principal } from './principal.ts';

const CODE_MS = 60_000;
const SESSION_MS = 12 * 3_600_000;
/** How many codes and sessions there may be; beyond that the oldest end. */
const MAX_KEPT = 10_000;

/** How long codes and sessions last. */
export interface LoginOptions {
  /** How long a code can be exchanged; a minute. */
  readonly codeMs?: number;
  /** How long a page stays logged in; 12 hours. */
  readonly sessionMs?: number;
  /** The page is served over HTTPS by something in front of this server. */
  readonly isSecure?: boolean;
  readonly clock?: Clock;
}

/**
 * Lets a page in without a token in its reach. Sessions are random names in the memory of this process: after a restart, or
 * at another instance, one logs in again.
 */
export interface Login {
  /** A code for one exchange. Hand it to the page in the fragment of its address, or have it typed in: never in a query. */
  createCode(principal: Principal): string;
  /** The cookie for a code that was created and not used; a code is used up even when it is too old. */
  exchange(code: string, request: Request): string | undefined;
  /** Ends the session of a request. Returns the cookie that clears it. */
  logout(request: Request): string;
  readonly authenticate: Authenticate;
}

/**
 * Creates a login for pages: a code is exchanged once for a cookie.
 *
 * @returns The login. Its `authenticate` goes into the options of handlers.
 */
export function createLogin(options: LoginOptions = {}): Login {
  const { codeMs = CODE_MS, sessionMs = SESSION_MS, isSecure = false, clock = systemClock } = options;
  const codes = new Kept(codeMs, clock);
  const sessions = new Kept(sessionMs, clock);
  const isHttps = (request: Request): boolean => isSecure || new URL(request.url).protocol === 'https:';
  const cookie = (request: Request, value: string, maxAge: number): string => {
    const attributes = `Path=/; Max-Age=${maxAge}; HttpOnly; SameSite=Strict${isHttps(request) ? '; Secure' : ''}`;
    return `${cookieName(isHttps(request))}=${value}; ${attributes}`;
  };
  const sessionOf = (request: Request): string | undefined => readCookie(request, cookieName(isHttps(request)));

  return {
    createCode: (principal) => codes.add(principal),
    exchange(code, request) {
      const principal = codes.remove(code);
      return principal && cookie(request, sessions.add(principal), Math.floor(sessionMs / 1_000));
    },
    logout(request) {
      const session = sessionOf(request);
      if (session !== undefined) sessions.remove(session);
      return cookie(request, '', 0);
    },
    authenticate(request) {
      const session = sessionOf(request);
      return session === undefined ? undefined : sessions.get(session);
    },
  };
}

/**
 * Combines several ways to find out who sent a request. They are asked in order.
 *
 * @returns A function for `authenticate`: the first identity found, or `undefined`.
 */
export function authenticateByAny(...all: readonly Authenticate[]): Authenticate {
  return async (request) => {
    for (const authenticate of all) {
      const identity = await authenticate(request);
      if (identity) return identity;
    }
    return undefined;
  };
}

/** Principals under secret names, for a time. Only hashes of the names are kept, so looking one up tells nothing. */
class Kept {
  readonly #forMs: number;
  readonly #clock: Clock;
  readonly #principals = new Map<string, { readonly principal: Principal; readonly until: number }>();

  constructor(forMs: number, clock: Clock) {
    this.#forMs = forMs;
    this.#clock = clock;
  }

  add(principal: Principal): string {
    const name = randomBytes(32).toString('base64url');
    if (this.#principals.size >= MAX_KEPT) this.#principals.delete(this.#principals.keys().next().value!);
    this.#principals.set(hashOf(name), { principal, until: this.#clock.now() + this.#forMs });
    return name;
  }

  get(name: string): Principal | undefined {
    const kept = this.#principals.get(hashOf(name));
    return kept === undefined || kept.until <= this.#clock.now() ? undefined : kept.principal;
  }

  remove(name: string): Principal | undefined {
    const principal = this.get(name);
    this.#principals.delete(hashOf(name));
    return principal;
  }
}

/** With this prefix no other host of the domain can set it. */
function cookieName(isHttps: boolean): string {
  return isHttps ? '__Host-whoa' : 'whoa';
}

function readCookie(request: Request, name: string): string | undefined {
  const pairs = (request.headers.get('cookie') ?? '').split(/; */);
  return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1);
}

function hashOf(name: string): string {
  return createHash('sha256').update(name).digest('hex');
}
