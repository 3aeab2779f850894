import { truncateSync } from 'node:fs';
import { CancellationToken } from '@whoa/core';
import { expect, test } from 'vitest';
import { mkfifoSync } from '../../../../test/tools/mkfifo.ts';
import { expectNothingLeft } from '../../../../test/tools/nothing-left.ts';
import { callTool, createWorkspace } from '../../../../test/workspace.ts';
import { createReadTool } from './read.ts';

expectNothingLeft();

test('a file is read whole, and people see where it is', async () => {
  using workspace = createWorkspace({ 'src/a.txt': 'one\ntwo\r\nthree\n' });
  const result = await callTool(createReadTool({ root: workspace.path }), { path: 'src/a.txt' });
  expect(result).toMatchObject({
    state: 'finished',
    content: 'one\ntwo\nthree',
    details: { path: 'src/a.txt', firstLine: 1, lines: 3, truncated: false },
  });
});

test('a part of a file is read, and the result shows how to continue', async () => {
  using workspace = createWorkspace({ 'a.txt': Array.from({ length: 5_000 }, (_, i) => `line ${i + 1}`).join('\n') });
  const read = createReadTool({ root: workspace.path });
  const part = await callTool(read, { path: 'a.txt', offset: 10, limit: 2 });
  expect(part.content).toBe('line 10\nline 11\n[2 lines shown; continue with offset 12]');
  const whole = await callTool(read, { path: 'a.txt' });
  expect(whole.details).toMatchObject({ lines: 2_000, truncated: true });
  const past = await callTool(read, { path: 'a.txt', offset: 5_001 });
  expect(past).toMatchObject({ state: 'failed', content: "'a.txt' has fewer than 5001 lines" });
});

test('a file that is not UTF-8 is shown, and its reader is notified', async () => {
  using workspace = createWorkspace({});
  workspace.write('latin1.txt', Buffer.from('h\xf6he\n', 'latin1'));
  const { content } = await callTool(createReadTool({ root: workspace.path }), { path: 'latin1.txt' });
  expect(content).toBe('h\uFFFDhe\n[\uFFFD may stand for bytes that are not UTF-8; edit refuses such a file]');
});

test('characters are never cut in two, wherever chunks and limits fall', async () => {
  const line = `${'x'.repeat(65_533)}ü😀`;
  using workspace = createWorkspace({ 'a.txt': `${line}\nend ü😀\n` });
  const { content } = await callTool(createReadTool({ root: workspace.path }), { path: 'a.txt' });
  expect(content).toMatch(/^x{2000} \[\+63536 characters\]\nend ü😀$/);
});

test('the result shows how much of a very long line is left out, whatever it is read in', async () => {
  using workspace = createWorkspace({ 'a.txt': `${'x'.repeat(300_000)}\n${'y'.repeat(2_001)}\nend` });
  const { content } = await callTool(createReadTool({ root: workspace.path }), { path: 'a.txt' });
  expect(content).toMatch(/^x{2000} \[\+298000 characters\]\ny{2000} \[\+1 characters\]\nend$/);
});

test('very much text is cut at the limit', async () => {
  using workspace = createWorkspace({ 'a.txt': `${'y'.repeat(1_000)}\n`.repeat(100) });
  const result = await callTool(createReadTool({ root: workspace.path }), { path: 'a.txt' });
  expect(result.details).toMatchObject({ truncated: true, lines: 49 });
  expect(result.content).toContain('continue with offset 50');
});

test('binary files are rejected, and images are shown', async () => {
  using workspace = createWorkspace();
  workspace.write('a.bin', Buffer.from([1, 0, 2]));
  workspace.write('a.png', Buffer.from('89504e47', 'hex'));
  workspace.write('huge.png', '');
  truncateSync(workspace.at('huge.png'), 6_000_000);
  const read = createReadTool({ root: workspace.path });
  expect(await callTool(read, { path: 'a.bin' })).toMatchObject({ state: 'failed', isError: true });
  expect((await callTool(read, { path: 'a.png' })).content).toEqual([
    { type: 'text', text: 'a.png (image/png, 4 bytes)' },
    { type: 'image', mediaType: 'image/png', data: 'iVBORw==' },
  ]);
  expect((await callTool(read, { path: 'huge.png' })).content).toContain('6000000 bytes');
});

test('a folder, a pipe and nothing at all are rejected without waiting', async () => {
  using workspace = createWorkspace({ 'sub/a': '' });
  mkfifoSync(workspace.at('pipe'));
  const read = createReadTool({ root: workspace.path });
  expect((await callTool(read, { path: 'sub' })).content).toContain('use ls to list it');
  expect((await callTool(read, { path: 'pipe' })).content).toContain('pipe, socket or device');
  expect((await callTool(read, { path: 'none' })).content).toContain('does not exist');
  expect((await callTool(read, { path: '../x' })).content).toContain('outside the root');
  const long = 'n'.repeat(300);
  expect((await callTool(read, { path: long })).content).toBe(`'${long}': name too long`);
});

test('cancelled mid-way, it hands over the lines it has', async () => {
  using workspace = createWorkspace({ 'a.txt': `${'z'.repeat(79)}\n`.repeat(200_000) });
  using token = new CancellationToken();
  const read = createReadTool({ root: workspace.path });
  const reading = callTool(read, { path: 'a.txt', offset: 150_000 }, { token });
  for (let locked = 0; locked < 10; locked++) await new Promise((resolve) => setImmediate(resolve));
  token.cancel({ kind: 'user' }, { mode: 'now' });
  expect(await reading).toMatchObject({ state: 'interrupted', details: { path: 'a.txt', truncated: true } });
});
