import { renameSync, symlinkSync, unlinkSync } from 'node:fs';
import type { Tool } from '@whoa/core';
import { createRuntime } from '@whoa/core';
import type { CallPreview } from '@whoa/core/internal';
import { expect, onTestFinished, test } from 'vitest';
import { createWorkspace } from '../../../../../test/workspace.ts';
import { createEditTool } from '../edit.ts';
import { createWriteTool } from '../write.ts';

function setUp(files: Record<string, string> = {}) {
  const workspace = createWorkspace(files);
  onTestFinished(() => workspace[Symbol.dispose]());
  return workspace;
}

const signal = new AbortController().signal;
const preview = (tool: Tool<never>, input: unknown) => (tool as Tool).preview!(input, { signal });

/** Runs a call that was allowed after its preview was shown; something happens in between. */
async function callAfter(tool: Tool<never>, input: unknown, meanwhile: () => void) {
  const approve = async () => {
    const shown: CallPreview = await preview(tool, input);
    meanwhile();
    return { approved: true as const, shown };
  };
  const runtime = createRuntime({ tools: [tool as Tool], approve });
  return (await runtime.execute([{ id: 'c', tool: tool.name, input }]))[0]!;
}

test('a preview is a diff against the current file, and changes nothing', async () => {
  const workspace = setUp({ 'a.txt': 'one\ntwo\n' });
  const before = workspace.list();
  const input = { path: 'a.txt', edits: [{ oldText: 'two', newText: '2' }] };
  const { change } = await preview(createEditTool({ root: workspace.path }) as Tool<never>, input);
  expect(change).toMatchObject({ path: workspace.at('a.txt'), isNew: false, fields: ['edits'] });
  expect(change!.diff).toContain('-two\n+2\n');
  const created = await preview(createWriteTool({ root: workspace.path }) as Tool<never>, {
    path: 'x/y/z',
    content: 'new\n',
  });
  expect(created.change).toMatchObject({ path: workspace.at('x/y/z'), isNew: true, fields: ['content'] });
  expect(created.change!.diff).toContain('+new\n');
  expect(workspace.list()).toEqual(before);
});

test('a preview of a write that changes nothing has an empty diff', async () => {
  const workspace = setUp({ 'a.txt': 'one\n' });
  const input = { path: 'a.txt', content: 'one\n' };
  const { change } = await preview(createWriteTool({ root: workspace.path }) as Tool<never>, input);
  expect(change).toMatchObject({ isNew: false, diff: '' });
});

test('a preview names the real file, also where folders are missing behind a link', async () => {
  const workspace = setUp({ 'real/a': '' });
  symlinkSync('real', workspace.at('link'));
  const { change } = await preview(createWriteTool({ root: workspace.path }) as Tool<never>, {
    path: 'link/x/y',
    content: '',
  });
  expect(change!.path).toBe(workspace.at('real/x/y'));
});

test('an edit that cannot be made has no preview, and neither has a path outside', async () => {
  const workspace = setUp({ 'a.txt': 'one' });
  const edits = [{ oldText: 'two', newText: '2' }];
  await expect(
    preview(createEditTool({ root: workspace.path }) as Tool<never>, { path: 'a.txt', edits }),
  ).rejects.toThrow(/does not occur/);
  await expect(
    preview(createWriteTool({ root: workspace.path }) as Tool<never>, { path: '../x', content: '' }),
  ).rejects.toThrow(/outside/);
});

test.each<[string, Tool<never>['name'], (at: (name: string) => string, write: (text: string) => void) => void]>([
  ['was written to', 'write', (_, write) => write('other')],
  ['was written to with as many bytes', 'write', (_, write) => write('OLD\n')],
  ['was removed', 'write', (at) => unlinkSync(at('a.txt'))],
  [
    'was swapped for a link',
    'write',
    (at) => {
      renameSync(at('a.txt'), at('b.txt'));
      symlinkSync('c.txt', at('a.txt'));
    },
  ],
  ['was written to', 'edit', (_, write) => write('old other\n')],
])('a file that %s after it was shown is not changed by %s', async (_, name, meanwhile) => {
  const workspace = setUp({ 'a.txt': 'old\n', 'c.txt': 'old\n' });
  const tool = (name === 'edit' ? createEditTool : createWriteTool)({ root: workspace.path }) as unknown as Tool<never>;
  const change = name === 'edit' ? { edits: [{ oldText: 'old', newText: 'new' }] } : { content: 'new\n' };
  const input = { path: 'a.txt', ...change };
  const result = await callAfter(tool, input, () =>
    meanwhile(
      (path) => workspace.at(path),
      (text) => workspace.write('a.txt', text),
    ),
  );
  expect(result).toMatchObject({
    isError: true,
    content: expect.stringMatching(/changed after .* shown|does not exist/) as string,
  });
  expect(workspace.list().map((file) => workspace.read(file))).not.toContain('new\n');
});

test('a file that someone creates after a new one was shown is not replaced', async () => {
  const workspace = setUp();
  const tool = createWriteTool({ root: workspace.path }) as unknown as Tool<never>;
  const result = await callAfter(tool, { path: 'a.txt', content: 'new' }, () => workspace.write('a.txt', 'theirs'));
  expect(result).toMatchObject({ isError: true, content: expect.stringMatching(/changed after/) as string });
  expect(workspace.read('a.txt')).toBe('theirs');
});

test('a file that did not change is written, and a call without an approval needs no preview', async () => {
  const workspace = setUp({ 'a.txt': 'old\n' });
  const tool = createWriteTool({ root: workspace.path }) as unknown as Tool<never>;
  expect(await callAfter(tool, { path: 'a.txt', content: 'new\n' }, () => {})).toMatchObject({ state: 'finished' });
  const runtime = createRuntime({ tools: [tool as Tool], approve: () => true });
  const [result] = await runtime.execute([{ id: 'c', tool: 'write', input: { path: 'a.txt', content: 'newer' } }]);
  expect(result).toMatchObject({ state: 'finished' });
});
