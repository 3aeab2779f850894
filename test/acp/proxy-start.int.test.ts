// An editor waits for the proxy at every start, so it loads only what it needs.
import { expect, test } from 'vitest';
import { createHome } from '../command/terminal.ts';

const HOOK = `import { registerHooks } from 'node:module';
import { writeSync } from 'node:fs';
registerHooks({
  load(url, context, next) {
    writeSync(2, 'load ' + url + '\\n');
    return next(url, context);
  },
});`;

test('the proxy loads no tools, no tasks and no schema library', () => {
  using home = createHome();
  const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(HOOK)}`;
  const { status, stderr } = home.whoa(['acp', '--', process.execPath, '-e', '0'], { env: { NODE_OPTIONS } });
  expect(status).toBe(0);
  const loaded = stderr.split('\n').flatMap((line) => (line.startsWith('load file:') ? [line.slice(5)] : []));
  expect(
    loaded.filter((url) => /\/zod\/|\/packages\/(tasks|ai-sdk|server)\/|\/tools\/src\/(files|mcp|shell)\//.test(url)),
  ).toEqual([]);
  expect(loaded.length).toBeGreaterThan(50);
  expect(loaded.length).toBeLessThan(200);
});
