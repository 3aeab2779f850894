import { mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { CancellationToken, createRuntime, type Tool } from '@whoa/core';
import { expect, test } from 'vitest';
import { mkfifoSync } from '../../../../test/mkfifo.ts';
import { expectNothingLeft } from '../../../../test/nothing-left.ts';
import { callTool, createWorkspace } from '../../../../test/workspace.ts';
import { grepTool } from './grep.ts';

expectNothingLeft();

/** Text in which this pattern takes long to find nothing. */
const SLOW_PATTERN = 'needle|(\\w+\\s){12}zq';
const slowText = () => 'lorem ipsum dolor sit amet '.repeat(1_500_000);

test('lines are found with path, number and column; the model gets a summary', async () => {
  using workspace = createWorkspace({
    'src/a.ts': 'one\n  needle here\nthree needle\n',
    'src/b.txt': 'Needle\n',
    '.hidden': 'needle\n',
    '.gitignore': 'ignored.txt\n',
    'ignored.txt': 'needle\n',
    '.git/x': 'needle\n',
  });
  workspace.write('binary', Buffer.from('needle\0needle'));
  const result = await callTool(grepTool({ root: workspace.path }), { pattern: 'needle' });
  expect(result.content).toBe(
    '.hidden\n1: needle\nsrc/a.ts\n2:   needle here\n3: three needle\n[3 matches in 2 files]',
  );
  expect(result.details).toEqual({
    files: 2,
    truncated: false,
    matches: expect.arrayContaining([{ path: 'src/a.ts', line: 3, column: 7, text: 'three needle' }]) as unknown,
  });
});

test('options: one file, a glob, any case, plain text, lines around, nothing found', async () => {
  using workspace = createWorkspace({ 'src/a.ts': 'one\nneedle (x)\nthree\n', 'b.md': 'NEEDLE\n' });
  const grep = grepTool({ root: workspace.path });
  const found = async (input: object) => (await callTool(grep, input)).content;
  expect(await found({ pattern: 'needle', path: 'src/a.ts', context: 1 })).toBe(
    'src/a.ts\n1- one\n2: needle (x)\n3- three\n[1 match in 1 file]',
  );
  expect(await found({ pattern: 'needle', path: 'src' })).toContain('src/a.ts\n2:');
  expect(await found({ pattern: 'needle', glob: '*.md', ignoreCase: true })).toBe(
    'b.md\n1: NEEDLE\n[1 match in 1 file]',
  );
  expect(await found({ pattern: '(x)', literal: true })).toContain('needle (x)');
  expect(await found({ pattern: 'absent' })).toBe('No match for absent.');
  expect(await found({ pattern: '--files' })).toBe('No match for --files.');
  expect(await found({ pattern: '(' })).toContain('The search failed: ');
  expect(await found({ pattern: 'x', path: '../' })).toContain('outside the root');
});

test('the limit is said; lines that are not UTF-8 and very long lines do no harm', async () => {
  using workspace = createWorkspace({
    'many.txt': 'needle\n'.repeat(1_000),
    'long.txt': `needle${'x'.repeat(2_000_000)}`,
  });
  workspace.write('latin1.txt', Buffer.from('needle h\xf6he\n', 'latin1'));
  const grep = grepTool({ root: workspace.path });
  const many = await callTool(grep, { pattern: 'needle', limit: 10, path: 'many.txt' });
  expect(many.content).toContain('[10 matches in 1 file; limit reached');
  expect(many.details).toMatchObject({ truncated: true });
  const latin = await callTool(grep, { pattern: 'needle', path: 'latin1.txt' });
  expect(latin.content).toBe('latin1.txt\n1: needle h\uFFFDhe\n[1 match in 1 file]');
  expect((await callTool(grep, { pattern: 'needle', path: 'long.txt' })).content).toContain(
    '1 very long line passed over',
  );
});

test('cancelled mid-way, the matches so far are kept and the searcher is gone', async () => {
  using workspace = createWorkspace({ 'a.txt': `${'needle\n'.repeat(20)}${slowText()}` });
  for (const path of ['a.txt', '.']) {
    using token = new CancellationToken();
    const grep = grepTool({ root: workspace.path });
    const { promise: found, resolve } = Promise.withResolvers<void>();
    const runtime = createRuntime({
      tools: [grep as Tool],
      hooks: { 'call-update': ({ partial }) => partial.content === '16 matches so far' && resolve() },
    });
    const searching = runtime.execute([{ id: '1', tool: 'grep', input: { pattern: SLOW_PATTERN, path } }], { token });
    const ended = searching.then(
      () => expect.fail('it was not cancelled'),
      (error: { partial: unknown[] }) => error.partial[0],
    );
    // A folder's matches come file by file, so there the cancel finds the search before its first.
    if (path === 'a.txt') await found;
    else for (let turn = 0; turn < 15; turn++) await new Promise((done) => setImmediate(done));
    token.cancel({ kind: 'user' }, { how: 'now' });
    const result = (await ended) as { state: string; details: { matches: unknown[] } };
    expect(result.state).toBe('interrupted');
    if (path === 'a.txt') expect(result.details.matches.length).toBeGreaterThanOrEqual(16);
  }
});

test('on a pipe it does not wait, however early the cancel comes', async () => {
  using workspace = createWorkspace({ 'a.txt': '' });
  mkfifoSync(workspace.at('pipe'));
  const grep = grepTool({ root: workspace.path });
  for (const path of ['pipe', '.']) {
    using token = new CancellationToken();
    const searching = callTool(grep, { pattern: 'x', path }, { token });
    token.cancel({ kind: 'user' }, { how: 'now' });
    expect(['failed', 'interrupted', 'not-started']).toContain((await searching).state);
    expect(['failed', 'finished']).toContain((await callTool(grep, { pattern: 'x', path })).state);
  }
});

test('a searcher planted in what is searched is not used', async () => {
  using workspace = createWorkspace({ 'bin/rg': '#!/bin/sh\necho planted\n', 'a.txt': 'needle\n' });
  const { PATH } = process.env;
  process.env['PATH'] = `${workspace.at('bin')}:relative/bin:${PATH}`;
  try {
    const result = await callTool(grepTool({ root: workspace.path }), { pattern: 'needle' });
    expect(result.content).toContain('a.txt\n1: needle');
  } finally {
    process.env['PATH'] = PATH;
  }
});

test('a link that leads out is not followed, neither in the tree nor when swapped in', async () => {
  using workspace = createWorkspace({ 'outside/secret.txt': 'needle secret\n', 'root/sub/a.txt': 'needle inside\n' });
  symlinkSync('../outside', workspace.at('root/out'));
  symlinkSync('../outside/secret.txt', workspace.at('root/out.txt'));
  const grep = grepTool({ root: workspace.at('root') });
  const before = await callTool(grep, { pattern: 'needle' });
  expect(before.content).toBe('sub/a.txt\n1: needle inside\n[1 match in 1 file]');
  renameSync(workspace.at('root/sub'), workspace.at('root/gone'));
  symlinkSync('../outside', workspace.at('root/sub'));
  expect((await callTool(grep, { pattern: 'needle', path: 'sub' })).content).toContain('outside the root');
  rmSync(workspace.at('root/sub'));
  mkdirSync(workspace.at('root/sub'));
});
