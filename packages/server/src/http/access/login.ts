import { hash, randomBytes } from 'node:crypto';
import { type Clock, systemClock } from '@whoa/core/embed';
import { settings } from '@whoa/core/internal';
import type { Authenticate, Principal } from './principal.ts';

const CODE_MS = 60_000;
const SESSION_MS = 12 * 3_600_000;
/** The maximum number of codes and of sessions. Beyond that, the oldest end. */
const MAX_KEPT = 10_000;

/** Marks a cookie that holds a token. Names of sessions contain no dot. */
const TOKEN_PREFIX = 'token.';
/** What a cookie can hold. */
const TOKEN = /^[\w.~+/=-]{1,1000}$/;

/** How long codes and sessions last. */
export interface LoginOptions {
  /** How long a code can be exchanged. Defaults to a minute. */
  readonly codeTtlMs?: number | undefined;
  /** How long a page stays logged in. Defaults to 12 hours. */
  readonly sessionTtlMs?: number | undefined;
  /**
   * Also lets users log in with a token that this function accepts, as `createTokenAuthenticator` does. Their cookie holds the token,
   * so it is valid on every server that accepts the token, and after a restart. Scripts cannot read it.
   */
  readonly tokens?: Authenticate | undefined;
  /** Set it if a proxy in front of this server serves the page over HTTPS. */
  readonly isSecure?: boolean | undefined;
  readonly clock?: Clock | undefined;
}

const ttlMs = settings.boundedMs({ max: 365 * 24 * 3_600_000 });
const LOGIN_RULES: settings.Rules<LoginOptions> = {
  codeTtlMs: ttlMs,
  sessionTtlMs: ttlMs,
  tokens: settings.callback,
  isSecure: settings.flag,
  clock: settings.having('a clock', 'now', 'setTimer'),
};

/**
 * Logs a page in without giving its scripts a token. Sessions that began with a code have random names and are kept in
 * the memory of this process: after a restart, or on another instance, users log in again.
 */
export interface Login {
  /**
   * Creates a one-time code. Pass it to the page in the fragment of its URL, or let the user type it: never in a query.
   */
  createCode(principal: Principal): string;
  /** Returns the cookie for a code that was created and not used. Even an expired code can be tried only once. */
  exchangeCode(code: string, request: Request): string | undefined;
  /** Returns the cookie for a token, if tokens are accepted and this one is. */
  exchangeToken(token: string, request: Request): Promise<string | undefined>;
  /** Ends the session of a request. Returns the cookie that clears it. */
  logout(request: Request): string;
  readonly authenticate: Authenticate;
}

/**
 * Creates a login for pages: a code is exchanged once for a cookie.
 *
 * @returns The login. Pass its `authenticate` to handlers.
 * @throws {@link SettingsError} when an option is invalid.
 */
export function createLogin(given: LoginOptions = {}): Login {
  const options = settings.readSettings<LoginOptions>(given, LOGIN_RULES);
  const { codeTtlMs = CODE_MS, sessionTtlMs = SESSION_MS, tokens, isSecure = false, clock = systemClock } = options;
  const codes = new ExpiringMap(codeTtlMs, clock);
  const sessions = new ExpiringMap(sessionTtlMs, clock);
  const maxAge = Math.floor(sessionTtlMs / 1_000);
  const isHttps = (request: Request): boolean => isSecure || new URL(request.url).protocol === 'https:';
  const cookie = (request: Request, value: string, maxAge: number): string => {
    const attributes = `Path=/; Max-Age=${maxAge}; HttpOnly; SameSite=Strict${isHttps(request) ? '; Secure' : ''}`;
    return `${cookieName(request, isHttps(request))}=${value}; ${attributes}`;
  };
  const findSession = (request: Request): string | undefined =>
    readCookie(request, cookieName(request, isHttps(request)));

  return {
    createCode: (principal) => codes.add(principal),
    exchangeCode(code, request) {
      const principal = codes.remove(code);
      return principal && cookie(request, sessions.add(principal), maxAge);
    },
    async exchangeToken(token, request) {
      const isAccepted = tokens !== undefined && TOKEN.test(token) && (await tokens(withToken(request, token)));
      return isAccepted ? cookie(request, `${TOKEN_PREFIX}${token}`, maxAge) : undefined;
    },
    logout(request) {
      const session = findSession(request);
      if (session !== undefined) sessions.remove(session);
      return cookie(request, '', 0);
    },
    authenticate(request) {
      const session = findSession(request);
      if (session === undefined) return undefined;
      if (!session.startsWith(TOKEN_PREFIX)) return sessions.get(session);
      return tokens?.(withToken(request, session.slice(TOKEN_PREFIX.length)));
    },
  };
}

/**
 * Combines several ways to identify the sender of a request. They are tried in order.
 *
 * @returns A function for `authenticate`: the first identity found, or `undefined`.
 */
export function combineAuthenticators(...all: readonly Authenticate[]): Authenticate {
  return async (request) => {
    for (const authenticate of all) {
      const identity = await authenticate(request);
      if (identity) return identity;
    }
    return undefined;
  };
}

/** Principals by secret name, for a limited time. Only hashes of the names are kept, so lookup times reveal nothing. */
class ExpiringMap {
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
    this.#principals.set(hash('sha256', name), { principal, until: this.#clock.now() + this.#forMs });
    return name;
  }

  get(name: string): Principal | undefined {
    const kept = this.#principals.get(hash('sha256', name));
    return kept === undefined || kept.until <= this.#clock.now() ? undefined : kept.principal;
  }

  remove(name: string): Principal | undefined {
    const principal = this.get(name);
    this.#principals.delete(hash('sha256', name));
    return principal;
  }
}

/**
 * The prefix keeps other hosts of the domain from setting the cookie. The port is in the name because cookies ignore
 * ports: two pages on one host would log each other out.
 */
function cookieName({ url }: Request, isHttps: boolean): string {
  const { port } = new URL(url);
  return `${isHttps ? '__Host-' : ''}whoa${port && `-${port}`}`;
}

/** The request as one that carries the token itself. */
function withToken({ url }: Request, token: string): Request {
  return new Request(url, { headers: { authorization: `Bearer ${token}` } });
}

function readCookie(request: Request, name: string): string | undefined {
  const pairs = (request.headers.get('cookie') ?? '').split(/; */);
  return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1);
}
