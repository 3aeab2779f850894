const HTML =
  '<!doctype html><meta charset=utf-8><title>Chat</title><div id=root></div><script type=module src=/page.js></script>';

/** The page, its script, and another place. */
export function fileFor(pathname: string, script: string): Response {
  if (pathname === '/page.js')
    return new Response(script, { headers: { 'content-type': 'text/javascript', 'cache-control': 'max-age=3600' } });
  return new Response(pathname === '/' ? HTML : '<!doctype html><h1>Elsewhere</h1>', {
    headers: { 'content-type': 'text/html' },
  });
}
