// docs/guides/workers/http.md lists every route of the task API, with the right that it requires.
import { expect, test } from 'vitest';
import { createLogin } from '../packages/server/src/http/access/login.ts';
import { read } from './docs/pages.ts';
import { serve } from './server/served.ts';

const [, section = ''] = /^## Routes$(.*?)^## /msu.exec(read('docs/guides/workers/http.md')) ?? [];
const rows = [...section.matchAll(/^\| ((?:`[A-Z]+ \/[^`]+`(?:, )?)+) \| (\w+) \|/gmu)];

test('the page on tasks over HTTP lists every route with its right, once', () => {
  const listed = rows.flatMap(([, routes = '', right = '']) =>
    Array.from(routes.matchAll(/`([^`]+)`/gu), ([, route]) => `${route} ${right === 'none' ? 'public' : right}`),
  );
  const { routes } = serve({ login: createLogin(), metrics: () => '' }).api;
  const existing = routes.map(({ method, path, right }) => `${method.toUpperCase()} ${path} ${right}`);
  expect(listed.toSorted()).toEqual(existing.toSorted());
});
