import { type Clock, systemClock } from '@whoa/core/embed';
import { settings } from '@whoa/core/internal';
import { type ApproverOptions, createApproverCheck, type RefuseAnswer } from './approvers.ts';
import { readBody } from './body.ts';
import { createOriginGuard, type OriginOptions } from './origin.ts';
import {
  type Audit,
  type AuditEvent,
  type Authenticate,
  type Principal,
  type Right,
  toPrincipal,
} from './principal.ts';
import { RateLimit } from './rate-limit.ts';
import { type ErrorBody, refuse, refuseTemporarily } from './refusal.ts';

/** What one principal may use of a server. */
interface AccessLimits {
  /** The maximum size of a body. Defaults to 5 MiB. */
  readonly maxBodyBytes: number;
  /** The sustained number of requests per second. Defaults to 50. */
  readonly requestsPerSecond: number;
  /** The number of requests in a burst after a pause. Defaults to 200. */
  readonly requestsBurst: number;
  /** How many streams may be open at the same time, and how many pages may watch chats. Defaults to 100. */
  readonly maxStreams: number;
}

/** A body of the largest size takes 5 MB of memory while it is on its way, however slowly it comes. */
const MAX_LARGE_BODIES = 16;

/** The default limits of a principal. */
const ACCESS_LIMITS: AccessLimits = {
  maxBodyBytes: 5 * 1024 * 1024,
  requestsPerSecond: 50,
  requestsBurst: 200,
  maxStreams: 100,
};

/** Options for access control. Only `authenticate` is required. */
export interface AccessOptions extends OriginOptions, ApproverOptions {
  readonly authenticate: Authenticate;
  /** Called with every cancel, approval and message to a running task, and who did it. */
  readonly audit?: Audit | undefined;
  readonly limits?: { readonly [Name in keyof AccessLimits]?: AccessLimits[Name] | undefined } | undefined;
  readonly clock?: Clock | undefined;
  /** Called when `authenticate`, `approvers` or `audit` throws. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

const { callback, count, group, listOf, nonEmptyText, required } = settings;
const AUTHENTICATE = "a function from a request to its user; to try things out: () => 'anyone'";

/** The rules for the options of access control. */
export const ACCESS_RULES: settings.Rules<AccessOptions> = {
  authenticate: required(settings.rule(AUTHENTICATE, (value) => typeof value === 'function')),
  audit: callback,
  limits: group<AccessLimits>({
    maxBodyBytes: count(),
    requestsPerSecond: settings.rule('a number above 0', (value) => typeof value === 'number' && value > 0),
    requestsBurst: count({ orInfinity: true }),
    maxStreams: count({ min: 0, orInfinity: true }),
  }),
  clock: settings.having('a clock', 'now', 'setTimer'),
  onError: callback,
  origins: listOf(nonEmptyText),
  hosts: (value, field) => (value === 'any' ? value : listOf(nonEmptyText)(value, field)),
  approvers: callback,
  starterMayAnswer: settings.flag,
};

/** The checks that every route makes before it does anything. */
export interface Access {
  /** Returns the sender of a request if they have the right; otherwise the response that says why not. */
  authorize(request: Request, right: Right): Promise<Principal | Response>;
  /** For routes that need no right: checks whether requests from this origin are allowed. */
  checkOrigin(request: Request): Response | undefined;
  /** Returns the headers that let a page of a listed origin read the response. */
  getCorsHeaders(request: Request): Readonly<Record<string, string>>;
  /** Reads the whole body into memory, unless it is too large. */
  readBody(request: Request): Promise<Request | Response>;
  /** Counts a stream until it is disposed, unless too many of its kind are open. */
  openStream(principal: Principal, kind?: string): Disposable | Response;
  /** Returns why a principal may not answer questions; `undefined` if they may. They are read only if that depends on them. */
  readonly refuseAnswer: RefuseAnswer;
  /** Records what a principal did in the audit. */
  audit(principal: Principal, event: Omit<AuditEvent, 'at' | 'actor' | 'actorTenant'>): void;
}

/**
 * Creates the access control of a server: identity, rights, origins, rates and sizes. Share one between all handlers of
 * a server, so that its limits apply to all of them.
 *
 * @returns The access control to pass to handlers.
 * @throws {@link SettingsError} when an option is invalid.
 */
export function createAccess(given: AccessOptions): Access {
  const options = settings.readSettings<AccessOptions>(given, ACCESS_RULES);
  const { authenticate, audit, clock = systemClock, onError = () => {} } = options;
  const limits: AccessLimits = { ...ACCESS_LIMITS, ...(options.limits as Partial<AccessLimits> | undefined) };
  const origin = createOriginGuard(options);
  const rate = new RateLimit({ perSecond: limits.requestsPerSecond, burst: limits.requestsBurst, clock });
  const open = `${limits.maxStreams} streams are open; close one of them first`;
  const holdStream = createCounter(limits.maxStreams, { code: 'too-many-streams', message: open });
  const large = `${MAX_LARGE_BODIES} large requests are on their way; wait until one of them has arrived`;
  const holdBody = createCounter(MAX_LARGE_BODIES, { code: 'too-many-bodies', message: large });
  const senders = new WeakMap<Request, string>();
  const checkApprover = createApproverCheck(options, { clock, onError });

  async function identify(request: Request): Promise<Principal | Response> {
    try {
      return toPrincipal(await authenticate(request)) ?? refuseUnauthenticated();
    } catch (error) {
      onError(error);
      return refuse(500, { code: 'authenticate-failed', message: 'Authentication failed; see the server log' });
    }
  }

  return {
    ...origin,
    async authorize(request, right) {
      const refused = origin.checkOrigin(request);
      if (refused !== undefined) return refused;
      const principal = await identify(request);
      if (principal instanceof Response) return principal;
      const name = formatPrincipal(principal);
      senders.set(request, name);
      const earlyMs = rate.take(name);
      if (earlyMs > 0) {
        await rate.holdBack(request.signal);
        const message = 'Too many requests; wait a moment';
        return refuseTemporarily(429, { code: 'too-many-requests', message }, earlyMs);
      }
      return may(principal, right) ? principal : refuseRight(right);
    },
    readBody: (request) => readBody(request, limits.maxBodyBytes, () => holdBody(senders.get(request) ?? '')),
    openStream: (principal, kind = '') => holdStream(kind + formatPrincipal(principal)),
    refuseAnswer: async (principal, read) =>
      may(principal, 'approve') ? checkApprover(principal, read) : lacksRight('approve'),
    audit(principal, event) {
      const { name, tenant } = principal;
      const actor = { actor: name, ...(tenant !== event.tenant && { actorTenant: tenant }) };
      try {
        audit?.({ ...event, at: clock.wallNow?.() ?? clock.now(), ...actor });
      } catch (error) {
        // Don't fail the response: the action was done.
        onError(error);
      }
    },
  };
}

/** Returns whether a principal has a right. */
export function may({ rights }: Principal, right: Right): boolean {
  return rights.includes(right);
}

/** The response to a principal that lacks a right. */
export function refuseRight(right: Right): Response {
  return refuse(403, lacksRight(right));
}

/** Says which right a principal lacks. */
export function lacksRight(right: Right): ErrorBody['error'] {
  const message = `This needs the right '${right}', which you do not have; ask whoever gave you access`;
  return { code: 'forbidden', message };
}

function refuseUnauthenticated(): Response {
  const message = 'Authentication is required: send Authorization: Bearer TOKEN, or log in';
  return refuse(401, { code: 'unauthenticated', message }, { 'www-authenticate': 'Bearer' });
}

function formatPrincipal({ tenant, name }: Principal): string {
  return JSON.stringify([tenant, name]);
}

/** Counts what each name has open, and refuses what is too much. */
function createCounter(max: number, error: ErrorBody['error']): (name: string) => Disposable | Response {
  const open = new Map<string, number>();
  return (name) => {
    const before = open.get(name) ?? 0;
    if (before >= max) return refuseTemporarily(429, error, 1_000);
    open.set(name, before + 1);
    return once(() => (open.get(name) === 1 ? open.delete(name) : open.set(name, open.get(name)! - 1)));
  };
}

function once(work: () => unknown): Disposable {
  let isDone = false;
  return {
    [Symbol.dispose]() {
      if (!isDone) work();
      isDone = true;
    },
  };
}
