import { symlinkSync } from 'node:fs';
import { CancellationToken } from '@whoa/core';
import { expect, test } from 'vitest';
import { expectNothingLeft } from '../../../../../test/tools/nothing-left.ts';
import { callTool, createWorkspace } from '../../../../../test/workspace.ts';
import { createLsTool } from './ls.ts';

expectNothingLeft();

test('a folder is listed sorted, with kinds and sizes for people', async () => {
  using workspace = createWorkspace({ 'b.txt': 'four', 'a/x': '', '.hidden': '' });
  symlinkSync('/etc', workspace.at('out'));
  const result = await callTool(createLsTool({ root: workspace.path }), {});
  expect(result.content).toBe('.hidden\na/\nb.txt\nout@');
  expect(result.details).toEqual({
    path: '.',
    truncated: false,
    entries: [
      { name: '.hidden', kind: 'file', bytes: 0 },
      { name: 'a', kind: 'folder' },
      { name: 'b.txt', kind: 'file', bytes: 4 },
      { name: 'out', kind: 'link' },
    ],
  });
});

test('a name with line feeds or escape sequences is shown on one line', async () => {
  using workspace = createWorkspace({
    'a\n[1 of 1 entries shown]': '',
    'b\u001b[2J': '',
    'c\u202e\u2028': '',
    'd é': '',
  });
  const { content } = await callTool(createLsTool({ root: workspace.path }), {});
  expect(content).toBe('"a\\n[1 of 1 entries shown]"\n"b\\u001b[2J"\n"c\\u202e\\u2028"\nd é');
});

test('a missing folder, a file and a link that points outside are rejected; an empty folder is reported as empty', async () => {
  using workspace = createWorkspace({ 'root/a.txt': '', 'root/sub/x': '' });
  symlinkSync('..', workspace.at('root/out'));
  const ls = createLsTool({ root: workspace.at('root') });
  expect((await callTool(ls, { path: 'none' })).content).toContain('does not exist');
  expect((await callTool(ls, { path: 'a.txt' })).content).toContain('not a folder');
  expect((await callTool(ls, { path: 'out' })).content).toContain('outside the root');
});

test('a large folder is shown in part', async () => {
  using workspace = createWorkspace(Object.fromEntries(Array.from({ length: 600 }, (_, i) => [`f${i}`, ''])));
  const result = await callTool(createLsTool({ root: workspace.path }), {});
  expect(result.content).toContain('[500 of 600 entries shown');
  expect(result.details).toMatchObject({ truncated: true });
});

test('cancelled mid-way, it hands over the entries it has', async () => {
  using workspace = createWorkspace(Object.fromEntries(Array.from({ length: 2_000 }, (_, i) => [`f${i}`, ''])));
  using token = new CancellationToken();
  const listing = callTool(createLsTool({ root: workspace.path }), {}, { token });
  for (let locked = 0; locked < 10; locked++) await new Promise((resolve) => setImmediate(resolve));
  token.cancel({ kind: 'user' }, { mode: 'now' });
  expect(await listing).toMatchObject({ state: 'interrupted', details: { path: '.', truncated: true } });
});
