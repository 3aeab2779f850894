import { spawn } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { CancellationToken, createRuntime, type Tool } from '@whoa/core';
import { expect, test, vi } from 'vitest';
import { findMarked } from '../../../../../test/process-escapes/round.ts';
import { mkfifoSync } from '../../../../../test/tools/mkfifo.ts';
import { expectNothingLeft } from '../../../../../test/tools/nothing-left.ts';
import { callTool, createWorkspace } from '../../../../../test/workspace.ts';
import { createFileTools } from '../file-tools.ts';
import { createFindTool } from './find.ts';
import { createGrepTool } from './grep.ts';
import { createLsTool } from './ls.ts';

expectNothingLeft();

/** Text in which this pattern takes long to find nothing. */
const SLOW_PATTERN = 'needle|(\\w+\\s){12}zq';

/** Root can read everything, so the test continues as a user who cannot. */
function chownForNobody(folder: string): void {
  for (const name of ['.', ...readdirSync(folder)]) chownSync(`${folder}/${name}`, 65_534, 65_534);
  process.seteuid?.(65_534);
}
const slowText = () => 'lorem ipsum dolor sit amet '.repeat(1_500_000);

test('the model gets each matching line once and the totals; people get the question and the lines around', async () => {
  using workspace = createWorkspace({
    'src/a.ts': 'zero\none\n  needle here\nthree needle\nfour\nfive\nsix\n',
    'src/b.txt': 'Needle\n',
    '.hidden': 'needle\n',
    '.gitignore': 'ignored.txt\n',
    'ignored.txt': 'needle\n',
    '.git/x': 'needle\n',
  });
  workspace.write('binary', Buffer.from('needle\0needle'));
  const result = await callTool(createGrepTool({ root: workspace.path }), { pattern: 'needle' });
  expect(result.content).toBe('.hidden\n1: needle\nsrc/a.ts\n3: needle here\n4: three needle\n[3 matches in 2 files]');
  expect(result.details).toEqual({
    pattern: 'needle',
    path: '.',
    totalMatches: 3,
    totalFiles: 2,
    totalsAreWhole: true,
    truncated: false,
    unread: [],
    matches: [
      { path: '.hidden', line: 1, column: 1, text: 'needle', before: [], after: [] },
      {
        path: 'src/a.ts',
        line: 3,
        column: 3,
        text: '  needle here',
        before: ['zero', 'one'],
        after: ['three needle', 'four'],
      },
      {
        path: 'src/a.ts',
        line: 4,
        column: 7,
        text: 'three needle',
        before: ['one', '  needle here'],
        after: ['four', 'five'],
      },
    ],
  });
});

test('a match far along a line is shown to the model with its surroundings', async () => {
  using workspace = createWorkspace({ 'a.txt': `${'x'.repeat(5_000)} needle ${'y'.repeat(5_000)}\n` });
  const { content } = await callTool(createGrepTool({ root: workspace.path }), { pattern: 'needle' });
  expect(content).toMatch(/^a\.txt\n1: \[\d+ characters\+\] x+ needle y+ \[\+\d+ characters\]\n/);
  expect((content as string).length).toBeLessThan(350);
});

test('totals continue past the limit, up to a bound, and are marked', async () => {
  using workspace = createWorkspace({ 'a.txt': 'needle\n'.repeat(150), 'b.txt': 'needle\n'.repeat(12_000) });
  const grep = createGrepTool({ root: workspace.path });
  const counted = await callTool(grep, { pattern: 'needle', glob: 'a.txt' });
  expect(counted.content).toContain('[150 matches in 1 file; 100 shown; narrow the search or raise limit]');
  expect(counted.details).toMatchObject({ totalMatches: 150, totalsAreWhole: true, truncated: true });
  const endless = await callTool(grep, { pattern: 'needle', glob: 'b.txt', limit: 3 });
  expect(endless.content).toContain('[at least 10000 matches in 1 file; 3 shown; ');
  expect(endless.details).toMatchObject({ totalsAreWhole: false, truncated: true });
});

test('the context of thousands of long lines does not inflate the details', async () => {
  using workspace = createWorkspace({ 'a.txt': `needle${'x'.repeat(1_000)}\n`.repeat(2_000) });
  const { details, content } = await callTool(createGrepTool({ root: workspace.path }), {
    pattern: 'needle',
    limit: 600,
  });
  expect(JSON.stringify(details).length).toBeLessThan(400_000);
  expect((content as string).length).toBeLessThan(52_000);
});

test('globs never bring back what .gitignore leaves out, and are read as it reads them', async () => {
  using workspace = createWorkspace({
    '.gitignore': 'node_modules/\n.env\n*.log\n',
    '.env': 'needle\n',
    'x.log': 'needle\n',
    'node_modules/p/a.ts': 'needle\n',
    '.git/config': 'needle\n',
    'src/a.ts': 'needle\n',
    'src/deep/a.test.ts': 'needle\n',
    'lib/b.ts': 'needle\n',
  });
  const grep = createGrepTool({ root: workspace.path });
  const filesFor = async (glob: string) => {
    const { details } = await callTool(grep, { pattern: 'needle', glob });
    return (details as { matches: { path: string }[] }).matches.map(({ path }) => path);
  };
  expect(await filesFor('*')).toEqual(['lib/b.ts', 'src/a.ts', 'src/deep/a.test.ts']);
  expect(await filesFor('*.log')).toEqual([]);
  expect(await filesFor('.env')).toEqual([]);
  expect(await filesFor('src/**')).toEqual(['src/a.ts', 'src/deep/a.test.ts']);
  expect(await filesFor('src/**/*.test.ts')).toEqual(['src/deep/a.test.ts']);
  expect(await filesFor('{src,lib}/*.ts')).toEqual(['lib/b.ts', 'src/a.ts']);
  expect(await filesFor('!*.test.ts')).toEqual(['lib/b.ts', 'src/a.ts']);
});

test('a folder that cannot be read is reported, and a search that was stopped claims nothing', async () => {
  using workspace = createWorkspace({ 'closed/a.txt': 'needle\n', 'b.txt': 'other\n' });
  chmodSync(workspace.at('closed'), 0);
  const asNobody = process.getuid?.() === 0;
  if (asNobody) chownForNobody(workspace.path);
  try {
    const grep = createGrepTool({ root: workspace.path });
    const result = await callTool(grep, { pattern: 'needle' });
    expect(result.content).toBe('[0 matches in 0 files; not searched: closed: Permission denied]');
    expect(result.details).toMatchObject({ unread: ['closed: Permission denied'] });
    const found = await callTool(createFindTool({ root: workspace.path }), { glob: '*.txt' });
    expect(found.content).toBe('b.txt\n[1 file shown, not searched: closed: Permission denied]');
  } finally {
    if (asNobody) process.seteuid?.(0);
    chmodSync(workspace.at('closed'), 0o700);
  }
});

test('a write under way is not found', async () => {
  using workspace = createWorkspace({ 'a.txt': 'needle\n', [`.whoa-${process.pid}-0123456789ab.tmp`]: 'needle\n' });
  const [grep, find, ls] = [createGrepTool, createFindTool, createLsTool].map(
    (create) => create({ root: workspace.path }) as Tool,
  );
  expect((await callTool(grep!, { pattern: 'needle' })).content).toBe('a.txt\n1: needle\n[1 match in 1 file]');
  for (const glob of ['*', '*.tmp', '.*', '**', './*.tmp', '.whoa-*']) {
    expect((await callTool(grep!, { pattern: 'needle', glob })).content).not.toContain('.whoa');
    expect((await callTool(find!, { glob })).details).not.toMatchObject({ files: [expect.stringContaining('.whoa')] });
  }
  expect((await callTool(ls!, { path: '.' })).content).toBe('a.txt');
});

test('an edit in the same wave is seen before it or after it, and never as a temp file', async () => {
  using workspace = createWorkspace({ 'a.txt': `needle ${'x'.repeat(2_000_000)}\n` });
  const runtime = createRuntime({ tools: createFileTools({ root: workspace.path }) });
  for (let round = 0; round < 15; round++) {
    const [from, to] = round % 2 === 0 ? ['needle', 'noodle'] : ['noodle', 'needle'];
    const results = await runtime.execute([
      { id: 'edit', tool: 'edit', input: { path: 'a.txt', edits: [{ oldText: from, newText: to }] } },
      { id: 'grep', tool: 'grep', input: { pattern: 'n(ee|oo)dle' } },
      { id: 'find', tool: 'find', input: { glob: '*' } },
      { id: 'ls', tool: 'ls', input: {} },
    ]);
    expect(results.map(({ state }) => state)).toEqual(['finished', 'finished', 'finished', 'finished']);
    expect(JSON.stringify(results.slice(1))).not.toContain('.whoa');
  }
});

test('options: one file, a glob, any case, plain text, lines around, nothing found', async () => {
  using workspace = createWorkspace({ 'src/a.ts': 'one\nneedle (x)\nthree\n', 'b.md': 'NEEDLE\n' });
  const grep = createGrepTool({ root: workspace.path });
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

test('the limit is reported; lines that are not UTF-8 and very long lines do no harm', async () => {
  using workspace = createWorkspace({
    'many.txt': 'needle\n'.repeat(1_000),
    'long.txt': `needle${'x'.repeat(2_000_000)}`,
  });
  workspace.write('latin1.txt', Buffer.from('needle h\xf6he\n', 'latin1'));
  const grep = createGrepTool({ root: workspace.path });
  const many = await callTool(grep, { pattern: 'needle', limit: 10, path: 'many.txt' });
  expect(many.content).toContain('[1000 matches in 1 file; 10 shown');
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
    const grep = createGrepTool({ root: workspace.path });
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
    else for (let locked = 0; locked < 15; locked++) await new Promise((done) => setImmediate(done));
    token.cancel({ kind: 'user' }, { mode: 'now' });
    const result = (await ended) as { state: string; details: { matches: unknown[] } };
    expect(result.state).toBe('interrupted');
    if (path === 'a.txt') expect(result.details.matches.length).toBeGreaterThanOrEqual(16);
  }
});

test('a search never waits on a pipe, no matter how early the cancel comes', async () => {
  using workspace = createWorkspace({ 'a.txt': '' });
  mkfifoSync(workspace.at('pipe'));
  const grep = createGrepTool({ root: workspace.path });
  for (const path of ['pipe', '.']) {
    using token = new CancellationToken();
    const searching = callTool(grep, { pattern: 'x', path }, { token });
    token.cancel({ kind: 'user' }, { mode: 'now' });
    expect(['failed', 'interrupted', 'not-started']).toContain((await searching).state);
    expect(['failed', 'finished']).toContain((await callTool(grep, { pattern: 'x', path })).state);
  }
});

test('a searcher planted in what is searched is not used, whatever path leads to it', async () => {
  using workspace = createWorkspace({ 'real/a.txt': 'needle\n', 'real/packages/a/a.txt': 'needle\n' });
  for (const bin of ['real/bin', 'real/node_modules/.bin']) {
    workspace.write(`${bin}/rg`, `#!/bin/sh\ntouch ${workspace.at('planted')}\n`);
    chmodSync(workspace.at(`${bin}/rg`), 0o755);
  }
  symlinkSync('real', workspace.at('link'));
  mkdirSync(workspace.at('aside'));
  symlinkSync('../real/bin/rg', workspace.at('aside/rg'));
  const { PATH } = process.env;
  try {
    for (const [root, bin] of [
      ['real', 'real/bin'],
      ['link', 'real/bin'],
      ['real', 'link/bin'],
      ['real', 'aside'],
      ['real/packages/a', 'real/node_modules/.bin'],
    ] as const) {
      process.env['PATH'] = `${workspace.at(bin)}:relative/bin:${PATH}`;
      const result = await callTool(createGrepTool({ root: workspace.at(root) }), { pattern: 'needle' });
      expect(result.content, `${root} ${bin}`).toContain('a.txt\n1: needle');
      expect(existsSync(workspace.at('planted')), `${root} ${bin}`).toBe(false);
    }
  } finally {
    process.env['PATH'] = PATH;
  }
});

test('a searcher goes with its host, however the host ends', async () => {
  using workspace = createWorkspace({ 'a.txt': slowText() });
  const host = spawn(
    process.execPath,
    [
      '--conditions=@whoa/source',
      join(import.meta.dirname, '../../../../../test/fixtures/searcher.ts'),
      workspace.path,
    ],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );
  const searchers = (): number[] => findMarked(`zqsearch${host.pid}`);
  await vi.waitUntil(() => searchers().length > 0, { timeout: 20_000 });
  // The marker of the search itself is in the arguments of ripgrep alone.
  host.kill('SIGKILL');
  await vi.waitUntil(() => searchers().length === 0, { timeout: 1_000, interval: 5 });
});

test('a link that leads out is not followed, neither in the tree nor when swapped in', async () => {
  using workspace = createWorkspace({ 'outside/secret.txt': 'needle secret\n', 'root/sub/a.txt': 'needle inside\n' });
  symlinkSync('../outside', workspace.at('root/out'));
  symlinkSync('../outside/secret.txt', workspace.at('root/out.txt'));
  const grep = createGrepTool({ root: workspace.at('root') });
  const before = await callTool(grep, { pattern: 'needle' });
  expect(before.content).toBe('sub/a.txt\n1: needle inside\n[1 match in 1 file]');
  renameSync(workspace.at('root/sub'), workspace.at('root/gone'));
  symlinkSync('../outside', workspace.at('root/sub'));
  expect((await callTool(grep, { pattern: 'needle', path: 'sub' })).content).toContain('outside the root');
  rmSync(workspace.at('root/sub'));
  mkdirSync(workspace.at('root/sub'));
});
