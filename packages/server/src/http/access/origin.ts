import { SettingsError } from '@whoa/core';
import { refuse } from './refusal.ts';

const LOOPBACK: readonly string[] = ['localhost', '127.0.0.1', '[::1]'];
/** These methods change nothing, so a page that sends one unexpectedly does no harm. */
const SAFE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);
const SHARED_HEADERS = 'authorization, content-type, last-event-id, whoa-last-message, whoa-principal';
/** How long a browser may remember the answer to a preflight, in seconds. */
const PREFLIGHT_SECONDS = '600';

/** Where requests may come from. */
export interface OriginOptions {
  /**
   * The host names under which the server may be reached. Defaults to those of this machine. This stops DNS rebinding:
   * a page whose name resolves to this server has another name. `any`: a proxy in front has checked the name.
   */
  readonly hosts?: readonly string[] | 'any' | undefined;
  /** Origins of pages that may send requests, with cookies, in addition to the server's own: `https://app.example.com`. */
  readonly origins?: readonly string[] | undefined;
}

/** Decides which origins may send requests. */
export interface OriginGuard {
  /** Returns the refusal, if the origin is not allowed. */
  checkOrigin(request: Request): Response | undefined;
  /** Returns the headers that let a page of a listed origin read the response. */
  getCorsHeaders(request: Request): Readonly<Record<string, string>>;
}

export function createOriginGuard({ hosts = LOOPBACK, origins = [] }: OriginOptions): OriginGuard {
  for (const origin of origins) {
    if (!URL.canParse(origin) || new URL(origin).origin !== origin)
      throw new SettingsError('origins', `'${origin}' is not an origin; write 'https://name'`);
  }
  const listed = (request: Request): string | undefined => {
    const origin = request.headers.get('origin');
    return origin !== null && origins.includes(origin) ? origin : undefined;
  };

  return {
    checkOrigin(request) {
      const host = request.headers.get('host') ?? new URL(request.url).host;
      if (hosts !== 'any' && !isAllowedHost(host, hosts)) {
        const message = 'This server does not accept requests for that host; add it to `hosts`';
        return refuse(421, { code: 'host-refused', message });
      }
      const origin = request.headers.get('origin');
      if (origin === null) return needsOrigin(request) ? refuseOrigin('send the Origin of the page') : undefined;
      const isOwn =
        hosts === 'any' ? isOfItsSite(request, host) : origin === `${new URL(request.url).protocol}//${host}`;
      return isOwn || listed(request) !== undefined ? undefined : refuseOrigin('add the page to origins');
    },
    getCorsHeaders(request): Readonly<Record<string, string>> {
      const origin = listed(request);
      if (origin === undefined) return {};
      return {
        // Never `*`: only then may a browser send cookies.
        'access-control-allow-origin': origin,
        'access-control-allow-credentials': 'true',
        // A page of a listed origin may send any header: `authenticate` decides what they mean.
        'access-control-allow-headers': request.headers.get('access-control-request-headers') ?? SHARED_HEADERS,
        'access-control-max-age': PREFLIGHT_SECONDS,
        'access-control-allow-methods': 'GET, POST, DELETE',
        'access-control-expose-headers': 'retry-after, whoa-principal, whoa-renamed, whoa-version',
        vary: 'origin, access-control-request-headers',
      };
    },
  };
}

/** A proxy may use TLS where we do not, or call us by another name. Then only the browser's own headers can tell. */
function isOfItsSite({ headers }: Request, host: string): boolean {
  const isSame = ['http:', 'https:'].some((scheme) => headers.get('origin') === `${scheme}//${host}`);
  return isSame || headers.get('sec-fetch-site') === 'same-origin';
}

/** Browsers add cookies to requests of any page, but no page can forge its origin. */
function needsOrigin({ method, headers }: Request): boolean {
  return !SAFE.has(method) && headers.has('cookie') && !headers.has('authorization');
}

function refuseOrigin(advice: string): Response {
  return refuse(403, { code: 'origin-refused', message: `Requests from that page are not accepted; ${advice}` });
}

/** A name without a port allows every port. */
function isAllowedHost(host: string, hosts: readonly string[]): boolean {
  const name = host.replace(/:\d*$/, '').toLowerCase();
  return hosts.some((one) => one.toLowerCase() === host.toLowerCase() || one.toLowerCase() === name);
}
