import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { utimesSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { isNight } from '../../../../test/night.ts';
import { expectNothingLeft } from '../../../../test/tools/nothing-left.ts';
import { callTool, createWorkspace } from '../../../../test/workspace.ts';
import { createWriteTool } from './write.ts';

expectNothingLeft();

const WRITER = join(import.meta.dirname, '../../../../test/fixtures/writer.ts');
const isTemp = (name: string) => name.endsWith('.tmp');

test('a file is whole after its host is killed mid-write, and the next write removes the temp file', async () => {
  using workspace = createWorkspace({ 'a.txt': 'z'.repeat(16_000_000) });
  for (let round = 0; round < 5; round++) {
    const args = ['--conditions=@whoa/source', WRITER, workspace.path];
    const writer = spawn(process.execPath, args, { stdio: 'inherit' });
    const exited = once(writer, 'exit');
    while (!workspace.list().some(isTemp)) await new Promise((resolve) => setImmediate(resolve));
    writer.kill('SIGKILL');
    await exited;
    const content = workspace.read('a.txt');
    expect(content === content.charAt(0).repeat(16_000_000)).toBe(true);
    for (const temp of workspace.list().filter(isTemp)) utimesSync(workspace.at(temp), 1, 1);
    await callTool(createWriteTool({ root: workspace.path }), { path: 'b.txt', content: '' });
    expect(workspace.list()).toEqual(['a.txt', 'b.txt']);
  }
});

test.runIf(process.getuid?.() === 0)('a file that is its own mount is written too', async () => {
  using workspace = createWorkspace({ 'outside.txt': 'the old content, and a long one', 'root/a.txt': '' });
  execFileSync('mount', ['--bind', workspace.at('outside.txt'), workspace.at('root/a.txt')]);
  try {
    const result = await callTool(createWriteTool({ root: workspace.at('root') }), { path: 'a.txt', content: 'new' });
    expect(result).toMatchObject({ state: 'finished', content: 'Replaced a.txt (3 bytes).' });
    expect(workspace.read('outside.txt')).toBe('new');
    expect(workspace.list()).toEqual(['outside.txt', 'root', 'root/a.txt']);
  } finally {
    execFileSync('umount', [workspace.at('root/a.txt')]);
  }
});

/** Reading them all would take a hundred times as long as the write itself. */
const ENTRIES = isNight ? 200_000 : 20_000;

test(`a folder of ${ENTRIES} entries costs a write no more than ten times what a small one does`, async () => {
  using workspace = createWorkspace({ 'large/a.txt': '', 'small/a.txt': '' });
  execFileSync('sh', ['-c', `seq ${ENTRIES} | xargs touch`], { cwd: workspace.at('large') });
  const tool = createWriteTool({ root: workspace.path });
  const took: Record<string, number[]> = { large: [], small: [] };
  // Taken in turns: a busy machine is busy for both.
  for (let round = 0; round < 15; round++) {
    for (const [folder, times] of Object.entries(took)) {
      const startedAt = performance.now();
      const result = await callTool(tool, { path: `${folder}/a.txt`, content: `${round}` });
      times.push(performance.now() - startedAt);
      expect(result.state).toBe('finished');
    }
  }
  const median = (times: number[]): number => times.toSorted((a, b) => a - b)[times.length >> 1]!;
  expect(median(took['large']!)).toBeLessThan(10 * median(took['small']!));
});
