import { chmodSync, linkSync, mkdirSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { CancellationToken, createRuntime, type Tool } from '@whoa/core';
import { expect, test } from 'vitest';
import { mkfifoSync } from '../../../../test/tools/mkfifo.ts';
import { expectNothingLeft } from '../../../../test/tools/nothing-left.ts';
import { callTool, createWorkspace, type Workspace } from '../../../../test/workspace.ts';
import { createRoot } from './path/root.ts';
import { createWriteTool } from './write.ts';

expectNothingLeft();

const temps = (workspace: Workspace) => workspace.list().filter((name) => name.includes('.tmp'));

/** Resolves when a write has begun to fill its temp file. */
async function whenWriting(workspace: Workspace): Promise<void> {
  while (temps(workspace).length === 0) await new Promise((resolve) => setImmediate(resolve));
}

test('a new file is created with its folders', async () => {
  using workspace = createWorkspace();
  const result = await callTool(createWriteTool({ root: workspace.path }), { path: 'a/b/c.txt', content: 'höhe\n' });
  expect(result).toMatchObject({
    state: 'finished',
    content: 'Created a/b/c.txt (6 bytes).',
    details: { path: 'a/b/c.txt', created: true, bytes: 6, linesAdded: 1, linesRemoved: 0 },
  });
  expect(workspace.read('a/b/c.txt')).toBe('höhe\n');
  const usual = statSync(workspace.write('usual.txt', '')).mode;
  expect(statSync(workspace.at('a/b/c.txt')).mode).toBe(usual);
});

test('a replaced file keeps its mode, its links and shows its diff', async () => {
  using workspace = createWorkspace({ 'run.sh': 'one\ntwo\n' });
  chmodSync(workspace.at('run.sh'), 0o751);
  symlinkSync('run.sh', workspace.at('alias'));
  const result = await callTool(createWriteTool({ root: workspace.path }), { path: 'alias', content: 'one\n2\n' });
  expect(result.content).toBe('Replaced run.sh (6 bytes).');
  expect(result.details).toMatchObject({ linesAdded: 1, linesRemoved: 1, changedLines: [2] });
  expect((result.details as { diff: string }).diff).toContain('-two\n+2\n');
  expect(workspace.read('run.sh')).toBe('one\n2\n');
  expect(statSync(workspace.at('run.sh')).mode & 0o777).toBe(0o751);
  expect(workspace.list()).toEqual(['alias', 'run.sh']);
});

test('another hard link keeps the old content: a whole file matters more than the link', async () => {
  using workspace = createWorkspace({ 'a.txt': 'old' });
  linkSync(workspace.at('a.txt'), workspace.at('b.txt'));
  await callTool(createWriteTool({ root: workspace.path }), { path: 'a.txt', content: 'new' });
  expect([workspace.read('a.txt'), workspace.read('b.txt')]).toEqual(['new', 'old']);
});

test('characters that straddle two chunks are written whole', async () => {
  using workspace = createWorkspace();
  const content = `${'x'.repeat(262_143)}😀${'y'.repeat(262_142)}😀end`;
  await callTool(createWriteTool({ root: workspace.path }), { path: 'a.txt', content });
  expect(workspace.read('a.txt') === content).toBe(true);
});

test('folders, pipes and places outside are rejected, and nothing is created on the way', async () => {
  using workspace = createWorkspace({ 'root/sub/a': '' });
  mkfifoSync(workspace.at('root/pipe'));
  symlinkSync('../outside.txt', workspace.at('root/out'));
  const write = createWriteTool({ root: workspace.at('root') });
  for (const path of ['sub', 'pipe', 'out', '../outside.txt', 'new/../../outside.txt', '.']) {
    expect(await callTool(write, { path, content: 'x' })).toMatchObject({ state: 'failed' });
  }
  expect(workspace.list()).toEqual(['root', 'root/out', 'root/pipe', 'root/sub', 'root/sub/a']);
});

test('cancelled mid-way: the old file, no temp file, no new folder, and the call reports it', async () => {
  using workspace = createWorkspace({ 'a.txt': 'old' });
  const write = createWriteTool({ root: workspace.path });
  for (const path of ['a.txt', 'new/folder/a.txt']) {
    using token = new CancellationToken();
    const writing = callTool(write, { path, content: 'A'.repeat(32_000_000) }, { token });
    await whenWriting(workspace);
    token.cancel({ kind: 'user' }, { mode: 'now' });
    expect(await writing).toMatchObject({
      state: 'interrupted',
      content: `Interrupted (user) before it finished. Output so far:\n${path} was not changed.`,
      details: { changed: false },
    });
  }
  expect(workspace.list()).toEqual(['a.txt']);
  expect(workspace.read('a.txt')).toBe('old');
});

test('killed midway, it may still tidy up, so its end is known', async () => {
  using workspace = createWorkspace({ 'a.txt': 'old' });
  using token = new CancellationToken();
  const input = { path: 'a.txt', content: 'A'.repeat(32_000_000) };
  const writing = callTool(createWriteTool({ root: workspace.path }), input, { token });
  await whenWriting(workspace);
  token.cancel({ kind: 'shutdown' }, { mode: 'kill' });
  expect(await writing).toMatchObject({ state: 'interrupted' });
  expect(workspace.list()).toEqual(['a.txt']);
});

test('a write after a cancelled one is the one that stays', async () => {
  using workspace = createWorkspace({ 'a.txt': 'old' });
  using token = new CancellationToken();
  const root = createRoot(workspace.path);
  const big = callTool(createWriteTool({ root }), { path: 'a.txt', content: 'A'.repeat(32_000_000) }, { token });
  await whenWriting(workspace);
  token.cancel({ kind: 'user' }, { mode: 'now' });
  const small = callTool(createWriteTool({ root }), { path: './a.txt', content: 'new' });
  expect((await big).state).toBe('interrupted');
  expect((await small).state).toBe('finished');
  expect(workspace.read('a.txt')).toBe('new');
});

test('writers of one file take turns, by whatever path they come', async () => {
  using workspace = createWorkspace({ 'a.txt': 'old' });
  symlinkSync('a.txt', workspace.at('alias'));
  const runtime = createRuntime({ tools: [createWriteTool({ root: workspace.path }) as Tool] });
  const calls = Array.from({ length: 20 }, (_, index) => ({
    id: String(index),
    tool: 'write',
    input: { path: index % 2 ? 'a.txt' : 'alias', content: `${index}`.repeat(100_000) },
  }));
  const results = await runtime.execute(calls);
  expect(results.every(({ state }) => state === 'finished')).toBe(true);
  expect(workspace.read('a.txt')).toMatch(/^(\d\d?)\1+$/);
  expect(workspace.list()).toEqual(['a.txt', 'alias']);
});

test('temp files of processes that were killed are taken away, those of living ones are not', async () => {
  using workspace = createWorkspace();
  const dead = '.whoa-4194305-0123456789ab.tmp';
  const alive = `.whoa-${process.pid}-0123456789ab.tmp`;
  const young = '.whoa-4194306-0123456789ab.tmp';
  for (const name of [dead, alive, young]) writeFileSync(workspace.at(name), '');
  mkdirSync(workspace.at('.whoa-4194307-0123456789ab.tmp'));
  for (const name of [dead, alive]) utimesSync(workspace.at(name), 1, 1);
  await callTool(createWriteTool({ root: workspace.path }), { path: 'a.txt', content: '' });
  expect(workspace.list()).toEqual([alive, young, '.whoa-4194307-0123456789ab.tmp', 'a.txt'].sort());
});
