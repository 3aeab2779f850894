import { CancellationToken } from '@whoa/core';
import { expect, test } from 'vitest';
import { expectNothingLeft } from '../../../../test/tools/nothing-left.ts';
import { callTool, createWorkspace } from '../../../../test/workspace.ts';
import type { FileContents } from './contents.ts';
import { createEditTool } from './edit.ts';
import { createReadTool } from './read.ts';
import { createWriteTool } from './write.ts';

expectNothingLeft();

const never = (): Promise<never> => new Promise(() => {});

test('text from elsewhere is cut into lines like a file, and is no text if it has a NUL', async () => {
  using workspace = createWorkspace({ 'a.txt': 'on disk', 'a.png': 'pixels' });
  let text = '1\r\n2\n3\n4';
  const read = createReadTool({ root: workspace.path, contents: { read: () => Promise.resolve(text) } });
  expect(await callTool(read, { path: 'a.txt', offset: 2, limit: 2 })).toMatchObject({
    content: '2\n3\n[2 lines shown; continue with offset 4]',
    details: { path: 'a.txt', firstLine: 2, lines: 2, bytes: 8, truncated: true },
  });
  expect(await callTool(read, { path: 'a.txt' })).toMatchObject({
    content: '1\n2\n3\n4',
    details: { truncated: false },
  });
  expect(await callTool(read, { path: 'a.png' })).toMatchObject({ details: { mediaType: 'image/png', bytes: 6 } });
  text = '\0';
  expect(await callTool(read, { path: 'a.txt' })).toMatchObject({ state: 'failed' });
  text = '';
  expect(await callTool(read, { path: 'a.txt' })).toMatchObject({ state: 'finished', content: '' });
});

test('an edit of text from elsewhere that is written to the disk takes the text along', async () => {
  using workspace = createWorkspace({ 'a.txt': 'saved' });
  const contents: FileContents = { read: () => Promise.resolve('unsaved a') };
  const input = { path: 'a.txt', edits: [{ oldText: 'a\n', newText: 'b' }] };
  const edit = createEditTool({ root: workspace.path, contents });
  expect(await callTool(edit, input)).toMatchObject({ state: 'failed' });
  expect(workspace.read('a.txt')).toBe('saved');
  input.edits[0]!.oldText = ' a';
  expect(await callTool(edit, input)).toMatchObject({ state: 'finished' });
  expect(workspace.read('a.txt')).toBe('unsavedb');
});

test('folders are not written elsewhere, and folders made for a write that failed go again', async () => {
  using workspace = createWorkspace({ 'sub/a.txt': '' });
  const asked: string[] = [];
  const write = createWriteTool({
    root: workspace.path,
    contents: {
      write: (path) => {
        asked.push(path);
        return Promise.reject(new Error('full'));
      },
    },
  });
  for (const path of ['sub', '.', 'new/b.txt']) {
    expect(await callTool(write, { path, content: 'x' })).toMatchObject({ state: 'failed' });
  }
  expect(asked).toEqual([workspace.at('new/b.txt')]);
  expect(workspace.list()).toEqual(['sub', 'sub/a.txt']);
});

test('a cancel ends the wait for contents that ignore their signal: before the write nothing was changed, afterwards it is unknown', async () => {
  using workspace = createWorkspace({ 'a.txt': 'saved' });
  const cancelWhenAsked = async (contents: (ask: () => Promise<never>) => FileContents) => {
    using token = new CancellationToken();
    const ask = (): Promise<never> => {
      token.cancel({ kind: 'user' }, { mode: 'now' });
      return never();
    };
    const write = createWriteTool({ root: workspace.path, contents: contents(ask) });
    return await callTool(write, { path: 'a.txt', content: 'new' }, { token });
  };
  expect(await cancelWhenAsked((ask) => ({ read: ask, write: never }))).toMatchObject({
    state: 'interrupted',
    details: { path: 'a.txt', changed: false },
  });
  expect(await cancelWhenAsked((ask) => ({ write: ask }))).toMatchObject({
    state: 'unknown',
    details: { path: 'a.txt', changed: null },
  });
  expect(workspace.read('a.txt')).toBe('saved');
});
