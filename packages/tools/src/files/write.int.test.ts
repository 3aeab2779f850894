import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { utimesSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { expectNothingLeft } from '../../../../test/nothing-left.ts';
import { callTool, createWorkspace } from '../../../../test/workspace.ts';
import { writeTool } from './write.ts';

expectNothingLeft();

const WRITER = join(import.meta.dirname, '../../../../test/fixtures/writer.ts');
const isTemp = (name: string) => name.endsWith('.tmp');

test('when the host is killed in the middle, the file is whole and the next write takes the temp file away', async () => {
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
    await callTool(writeTool({ root: workspace.path }), { path: 'b.txt', content: '' });
    expect(workspace.list()).toEqual(['a.txt', 'b.txt']);
  }
});
