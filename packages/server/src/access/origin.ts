import { refuse } from './refusal.ts';

const LOOPBACK: readonly string[] = ['localhost', '127.0.0.1', '[::1]'];
/** These change nothing, so a page that sends one by surprise does no harm. */
const SAFE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);
const SHARED_HEADERS = 'authorization, content-type, last-event-id, whoa-last-message';

/** Where requests may come from. */
export interface OriginOptions {
  /**
   * Under which names the server may be reached; defaults to those of this machine. A page whose name was made to lead
   * here (DNS rebinding) has another. `any`: something in front has checked.
   */
  readonly hosts?: readonly string[] | 'any' | undefined;
  /** Pages that may send requests beside those of the server's own origin: `https://app.example.com`. */
  readonly origins?: readonly string[] | undefined;
}

/** Says whether a request may come from where it comes from. */
export interface OriginGuard {
  /** Returns why it may not. */
  check(request: Request): Response | undefined;
  /** The headers that let a page of another origin, if it is listed, read the response. */
  sharing(request: Request): Readonly<Record<string, string>>;
}

export function createOriginGuard({ hosts = LOOPBACK, origins = [] }: OriginOptions): OriginGuard {
  for (const origin of origins) {
    if (originOf(origin) !== origin) throw new TypeError(`origins: '${origin}' is no origin; write 'https://name'`);
  }
  const listed = (request: Request): string | undefined => {
    const origin = request.headers.get('origin');
    return origin !== null && origins.includes(origin) ? origin : undefined;
  };

  return {
    check(request) {
      const host = request.headers.get('host') ?? new URL(request.url).host;
      if (hosts !== 'any' && !isHostOf(host, hosts)) {
        return refuse(421, { code: 'host-refused', message: 'This server does not go by that name; add it to hosts' });
      }
      const origin = request.headers.get('origin');
      if (origin === null) return needsOrigin(request) ? refuseOrigin('send the Origin of the page') : undefined;
      const isOwn =
        hosts === 'any' ? isOfItsSite(request, host) : origin === `${new URL(request.url).protocol}//${host}`;
      return isOwn || listed(request) !== undefined ? undefined : refuseOrigin('add the page to origins');
    },
    sharing(request): Readonly<Record<string, string>> {
      const origin = listed(request);
      if (origin === undefined) return {};
      return {
        'access-control-allow-origin': origin,
        'access-control-allow-headers': SHARED_HEADERS,
        'access-control-allow-methods': 'GET, POST',
        'access-control-expose-headers': 'retry-after',
        vary: 'origin',
      };
    },
  };
}

/** What is in front may speak TLS where we do not, or call us by another name; then the browser's word is left. */
function isOfItsSite({ headers }: Request, host: string): boolean {
  const isSame = ['http:', 'https:'].some((scheme) => headers.get('origin') === `${scheme}//${host}`);
  return isSame || headers.get('sec-fetch-site') === 'same-origin';
}

/** A browser adds cookies to whatever any page sends; what no page can forge is the origin. */
function needsOrigin({ method, headers }: Request): boolean {
  return !SAFE.has(method) && headers.has('cookie') && !headers.has('authorization');
}

function refuseOrigin(advice: string): Response {
  return refuse(403, { code: 'origin-refused', message: `Requests of that page are not taken; ${advice}` });
}

/** A name without a port allows every port. */
function isHostOf(host: string, hosts: readonly string[]): boolean {
  const name = host.replace(/:\d*$/, '').toLowerCase();
  return hosts.some((one) => one.toLowerCase() === host.toLowerCase() || one.toLowerCase() === name);
}

function originOf(text: string): string | undefined {
  return URL.canParse(text) ? new URL(text).origin : undefined;
}
