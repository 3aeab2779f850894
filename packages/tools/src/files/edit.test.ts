import { chmodSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { CancellationToken, createRuntime, type Tool } from '@whoa/core';
import { expect, test } from 'vitest';
import { expectNothingLeft } from '../../../../test/tools/nothing-left.ts';
import { callTool, createWorkspace } from '../../../../test/workspace.ts';
import { replaceFile } from './change/replace-file.ts';
import { applyEdits, createEditTool } from './edit.ts';
import { createRoot } from './path/root.ts';

expectNothingLeft();

test('pieces that occur once are replaced, with a diff for people and line numbers for the model', async () => {
  using workspace = createWorkspace({ 'a.ts': 'const a = 1;\nconst b = 2;\n\n\n\n\n\n\n\n\nconst c = 3;\n' });
  chmodSync(workspace.at('a.ts'), 0o640);
  const edits = [
    { oldText: 'c = 3', newText: 'c = 33' },
    { oldText: 'a = 1', newText: 'a = 11' },
  ];
  const result = await callTool(createEditTool({ root: workspace.path }), { path: 'a.ts', edits });
  expect(result).toMatchObject({
    content: 'Edited a.ts: 2 replacements at line 1, 11.',
    details: { path: 'a.ts', replacements: 2, linesAdded: 2, linesRemoved: 2, changedLines: [1, 11] },
  });
  expect((result.details as { diff: string }).diff).toMatch(
    /^--- a\.ts\n\+\+\+ a\.ts\n@@ -1,4 \+1,4 @@\n-const a = 1;/,
  );
  expect(workspace.read('a.ts')).toContain('c = 33');
  expect(statSync(workspace.at('a.ts')).mode & 0o777).toBe(0o640);
});

test('new text gets the line breaks of its place, also in a file that has both kinds', () => {
  const mixed = 'one\r\ntwo\r\nthree\nfour\nfive';
  const edit = (oldText: string, newText: string) => applyEdits(mixed, [{ oldText, newText }], 'mixed');
  expect(edit('three', 'x\ny')).toBe('one\r\ntwo\r\nx\ny\nfour\nfive');
  expect(edit('one', 'x\ny')).toBe('x\r\ny\r\ntwo\r\nthree\nfour\nfive');
  expect(edit('one\ntwo', 'x\ny')).toBe('x\r\ny\r\nthree\nfour\nfive');
  expect(edit('three\r\nfour', 'x\r\ny')).toBe('one\r\ntwo\r\nx\ny\nfive');
  expect(edit('five', 'x\ny')).toBe('one\r\ntwo\r\nthree\nfour\nx\ny');
  expect(applyEdits('one', [{ oldText: 'one', newText: 'x\r\ny' }], 'alone')).toBe('x\ny');
});

test('pieces that occur never, twice or over each other are rejected, and nothing is changed', async () => {
  using workspace = createWorkspace({ 'a.txt': 'abc abc xyz' });
  const edit = createEditTool({ root: workspace.path });
  const failing = [
    { edits: [{ oldText: 'nope', newText: '' }], says: 'does not occur' },
    { edits: [{ oldText: 'abc', newText: '' }], says: 'more than once' },
    {
      edits: [
        { oldText: 'abc x', newText: '1' },
        { oldText: 'xyz', newText: '2' },
      ],
      says: 'Edits 1 and 2',
    },
    { edits: [{ oldText: 'xyz', newText: 'xyz' }], says: 'change nothing' },
    {
      edits: [
        { oldText: 'xyz', newText: '1' },
        { oldText: 'nope', newText: '2' },
      ],
      says: 'Edit 2',
    },
  ];
  for (const { edits, says } of failing) {
    const result = await callTool(edit, { path: 'a.txt', edits });
    expect(result.state).toBe('failed');
    expect(result.content).toContain(says);
  }
  expect(workspace.read('a.txt')).toBe('abc abc xyz');
  expect((await callTool(edit, { path: 'none', edits: failing[0]!.edits })).content).toContain('does not exist');
  expect((await callTool(edit, { path: 'a.txt', edits: [] })).state).toBe('not-started');
});

test('overlapping occurrences count as more than one', () => {
  expect(() => applyEdits('aaa', [{ oldText: 'aa', newText: 'b' }], 'x')).toThrow('more than once');
});

test('line breaks, a byte order mark and the missing last break of a file stay as they are', () => {
  const before = '\uFEFFone\r\ntwo\r\nthree';
  expect(applyEdits(before, [{ oldText: 'one\ntwo', newText: '1\n2' }], 'x')).toBe('\uFEFF1\r\n2\r\nthree');
});

test('bytes that are not text are not touched', async () => {
  using workspace = createWorkspace();
  workspace.write('a.bin', Buffer.from([0x61, 0xff, 0x62]));
  const edits = [{ oldText: 'a', newText: 'x' }];
  const result = await callTool(createEditTool({ root: workspace.path }), { path: 'a.bin', edits });
  expect(result.content).toContain('not UTF-8');
});

test('edits of one file in one wave follow each other, also through a link', async () => {
  using workspace = createWorkspace({ 'a.txt': Array.from({ length: 20 }, (_, i) => `<${i}>`).join('\n') });
  symlinkSync('a.txt', workspace.at('alias'));
  const runtime = createRuntime({ tools: [createEditTool({ root: workspace.path }) as Tool] });
  const calls = Array.from({ length: 20 }, (_, i) => ({
    id: String(i),
    tool: 'edit',
    input: { path: i % 2 ? 'a.txt' : 'alias', edits: [{ oldText: `<${i}>`, newText: `done ${i}` }] },
  }));
  const results = await runtime.execute(calls);
  expect(results.map(({ state }) => state)).toEqual(Array(20).fill('finished'));
  expect(workspace.read('a.txt')).toBe(Array.from({ length: 20 }, (_, i) => `done ${i}`).join('\n'));
});

test('a file that another program changed in the meantime is not overwritten', async () => {
  using workspace = createWorkspace({ 'a.txt': 'old' });
  using token = new CancellationToken();
  await using resolved = await createRoot(workspace.path).locate('a.txt');
  const baseVersion = statSync(workspace.at('a.txt'));
  writeFileSync(workspace.at('a.txt'), 'theirs');
  await expect(replaceFile(resolved, 'mine', { baseVersion, token })).rejects.toThrow('changed by another program');
  expect(workspace.list()).toEqual(['a.txt']);
  expect(workspace.read('a.txt')).toBe('theirs');
});

test('two versions too different to compare are counted and not compared', async () => {
  const lines = (word: string) =>
    Array.from({ length: 30_000 }, (_, i) => `${word} ${(i * 7_919) % 30_011}`).join('\n');
  using workspace = createWorkspace({ 'a.txt': `start\n${lines('old')}` });
  const started = performance.now();
  const edits = [{ oldText: `start\n${lines('old')}`, newText: lines('new') }];
  const result = await callTool(createEditTool({ root: workspace.path }), { path: 'a.txt', edits });
  expect(result.details).toMatchObject({ diff: null, linesAdded: 30_000, linesRemoved: 30_001 });
  expect(performance.now() - started).toBeLessThan(5_000);
});
