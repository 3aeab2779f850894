import { readFile } from 'node:fs/promises';
import { refuse } from '../../http/access/refusal.ts';

/** Where the console is served. */
const BASE = '/console';
/** The built page. It lies next to `dist`, because the compiler only copies code. */
const FOLDER = new URL('../../../console/', import.meta.url);
const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
};

/** Serves the console: a web page on which people follow and stop tasks. */
export interface ConsoleHandler {
  /** The path that it serves, with everything below it. */
  readonly path: string;
  /** Handles a request. */
  readonly fetch: (request: Request) => Promise<Response>;
}

/**
 * Creates the handler of the console. The page uses the task API of the same origin, so serve both from one server, and
 * give the API a login.
 *
 * @returns The handler.
 *
 * @example
 * ```ts
 * import { createAccess, createConsoleHandler, createLogin, createTaskApi, listen } from '@whoa/server';
 *
 * const login = createLogin();
 * const api = createTaskApi({ store, login, access: createAccess({ authenticate: login.authenticate }) });
 * const page = createConsoleHandler();
 * const isPage = (request: Request) => new URL(request.url).pathname.startsWith(page.path);
 * await using listening = await listen({ fetch: (request) => (isPage(request) ? page : api).fetch(request) });
 * const code = login.createCode({ tenant: 'acme', name: 'ada', rights: ['read', 'cancel'] });
 * console.log(`${listening.url}${page.path}/#code=${code}`);
 * ```
 */
export function createConsoleHandler(): ConsoleHandler {
  return { path: BASE, fetch: answer };
}

async function answer({ method, url }: Request): Promise<Response> {
  if (method !== 'GET' && method !== 'HEAD')
    return refuse(405, { code: 'method', message: 'The console is only read' });
  const { pathname } = new URL(url);
  if (pathname === BASE || pathname === '/')
    return new Response(null, { status: 308, headers: { location: `${BASE}/` } });
  const asset = /^\/console\/((?:assets\/)?[\w-]+\.(\w+))$/.exec(pathname);
  const [, file, ending = ''] = asset ?? [];
  // Every other address is a page of the console: its scripts find out which.
  const isPage = file === undefined || TYPES[ending] === undefined;
  const body = await readFile(new URL(isPage ? 'index.html' : file, FOLDER)).catch(() => undefined);
  if (body === undefined && !isPage) return refuse(404, { code: 'unknown-file', message: 'No such file' });
  if (body === undefined) {
    const message = "The console is not built; run 'npm run build' in the repository";
    return refuse(503, { code: 'not-built', message });
  }
  return new Response(method === 'HEAD' ? null : body, {
    headers: {
      'content-type': isPage ? TYPES['html']! : TYPES[ending]!,
      // Names of assets change with their content.
      'cache-control': pathname.includes('/assets/') ? 'public, max-age=31536000, immutable' : 'no-store',
      'content-security-policy': "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    },
  });
}
