import { readFile } from 'node:fs/promises';

const SCRIPT = 'text/javascript; charset=utf-8';
const FILES: Readonly<Record<string, { readonly file: string; readonly type: string }>> = {
  '/': { file: 'index.html', type: 'text/html; charset=utf-8' },
  '/page.css': { file: 'page.css', type: 'text/css; charset=utf-8' },
  '/page.js': { file: 'page.js', type: SCRIPT },
  '/reply.js': { file: 'reply.js', type: SCRIPT },
  '/report.js': { file: 'report.js', type: SCRIPT },
  '/elements.js': { file: 'elements.js', type: SCRIPT },
  '/icon.svg': { file: 'icon.svg', type: 'image/svg+xml' },
};

/** Returns a file of the page, if the path names one. The page loads nothing from other origins and cannot be framed. */
export async function pageFile(pathname: string): Promise<Response | undefined> {
  if (!Object.hasOwn(FILES, pathname)) return undefined;
  const { file, type } = FILES[pathname]!;
  // These files are next to `dist`, because the compiler only copies code.
  const body = await readFile(new URL(`../../demo/${file}`, import.meta.url), 'utf8');
  return new Response(body, {
    headers: {
      'content-type': type,
      'cache-control': 'no-store',
      'content-security-policy': "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    },
  });
}
