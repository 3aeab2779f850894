import { symlinkSync } from 'node:fs';
import { CancellationToken } from '@whoa/core';
import { expect, test } from 'vitest';
import { expectNothingLeft } from '../../../../../test/tools/nothing-left.ts';
import { callTool, createWorkspace } from '../../../../../test/workspace.ts';
import { createRoot } from '../path/root.ts';
import { createFindTool } from './find.ts';

expectNothingLeft();

test('files are found by glob, sorted, without ignored ones and without what links lead to', async () => {
  using workspace = createWorkspace({
    'src/a.ts': '',
    'src/deep/b.ts': '',
    'c.md': '',
    'odd\nname.ts': '',
    '.gitignore': 'build/\n',
    'build/d.ts': '',
    '.git/e.ts': '',
  });
  symlinkSync('src/a.ts', workspace.at('link.ts'));
  const find = createFindTool({ root: workspace.path });
  expect((await callTool(find, { glob: '*.ts' })).details).toEqual({
    files: ['odd\nname.ts', 'src/a.ts', 'src/deep/b.ts'],
    truncated: false,
    unread: [],
  });
  expect((await callTool(find, { glob: 'odd*' })).content).toBe('"odd\\nname.ts"');
  expect((await callTool(find, { glob: '*.ts', path: 'src' })).content).toBe('src/a.ts\nsrc/deep/b.ts');
  expect((await callTool(find, { glob: '*.none' })).content).toBe('No file matches *.none.');
  expect((await callTool(find, { glob: '*', path: 'c.md' })).content).toContain('not a folder');
  expect((await callTool(find, { glob: '*', path: 'nowhere' })).content).toContain('does not exist');
});

test('the limit is reported', async () => {
  using workspace = createWorkspace(Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`f${i}`, ''])));
  const result = await callTool(createFindTool({ root: workspace.path }), { glob: '*', limit: 10 });
  expect(result.content).toContain('[10 files shown, there may be more');
  expect(result.details).toMatchObject({ truncated: true });
});

test('a find that is cancelled while it looks its files up returns those it has, and looks up no more', async () => {
  using workspace = createWorkspace(Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`f${i}`, ''])));
  using token = new CancellationToken();
  const root = createRoot(workspace.path);
  let looks = 0;
  const locate: typeof root.locate = (path) => {
    // The first is the folder itself.
    if (++looks === 20) token.cancel({ kind: 'user' }, { mode: 'now' });
    return root.locate(path);
  };
  const { state, details } = await callTool(
    createFindTool({ root: { ...root, locate } }),
    { glob: '*', limit: 300 },
    { token },
  );
  expect(state).toBe('interrupted');
  expect((details as { files: string[] }).files.length).toBeGreaterThan(10);
  expect(looks).toBeLessThan(60);
});
