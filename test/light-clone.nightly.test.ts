import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createWorkspace } from './workspace.ts';

const MAX_MIB = 350;

test('without the tools of contributors, a clone is small, builds, and runs an example', () => {
  using folder = createWorkspace();
  const clone = folder.at('clone');
  const run = (file: string, ...args: string[]): string => execFileSync(file, args, { cwd: clone, encoding: 'utf8' });
  execFileSync('git', ['clone', '-q', join(import.meta.dirname, '..'), clone]);
  run('npm', 'ci', '--omit=dev');
  const [mib = ''] = run('du', '-sm', 'node_modules').split('\t');
  expect(Number(mib)).toBeLessThanOrEqual(MAX_MIB);
  run('npm', 'run', 'build');
  expect(run(process.execPath, 'examples/hello-token.ts')).not.toBe('');
});
