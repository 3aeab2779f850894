import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '..');
const run = (...args: string[]) => promisify(execFile)(process.execPath, args, { cwd: root });

test('examples/keep-streamtext.ts runs as it is', async () => {
  const { stdout, stderr } = await run('--conditions=@whoa/source', 'examples/keep-streamtext.ts');
  expect(stderr).toBe('');
  expect(stdout).toMatch(/^Sending it now\.\nStopped after \d+ ms\.\nsend_report: unknown\n/);
  expect(stdout).toMatch(/The provider accepted the next turn\.\n$/);
});

test.for(['langgraph', 'mastra'])('the recipe for %s runs where the framework installs', async (name, { skip }) => {
  const { stdout } = await run('scripts/recipe.ts', name);
  if (stdout.startsWith('skipped')) skip(stdout.trim());
  expect(stdout).toContain('send_report: unknown');
  expect(stdout).toContain('The provider accepted the next turn.');
  expect(stdout).toContain('The model was told: Outcome unknown');
});
