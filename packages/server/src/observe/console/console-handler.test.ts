import { expect, test } from 'vitest';
import { createConsoleHandler } from './console-handler.ts';

const { fetch, path } = createConsoleHandler();
const ask = (target: string, method = 'GET'): Promise<Response> =>
  fetch(new Request(`http://localhost${target}`, { method }));

test('the console is under one path, and its root leads there', async () => {
  expect(path).toBe('/console');
  for (const target of ['/', '/console']) {
    const response = await ask(target);
    expect([response.status, response.headers.get('location')]).toEqual([308, '/console/']);
  }
});

test.each([
  '/console/../package.json',
  '/console/..%2fpackage.json',
  '/console/assets/..%2f..%2fpackage.json',
  '/console/%2e%2e/package.json',
  '/console/assets/index.json',
  '/console/.tsbuildinfo',
])('files outside the built page are not served: %s', async (target) => {
  const response = await ask(target);
  expect(await response.text()).not.toContain('"@whoa/server"');
});

test('a file that is not there is not found, and nothing can be written', async () => {
  expect((await ask('/console/assets/none.js')).status).toBe(404);
  expect((await ask('/console/', 'POST')).status).toBe(405);
});
