// Runs the recipes for people who keep their framework, with the framework installed.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '..');

test.for(['langgraph', 'mastra'])('the recipe for %s runs where the framework installs', async (name, { skip }) => {
  const { stdout } = await promisify(execFile)(process.execPath, ['scripts/recipe.ts', name], { cwd: root });
  if (stdout.startsWith('skipped')) skip(stdout.trim());
  expect(stdout).toContain('send_report: unknown');
  expect(stdout).toContain('The provider accepted the next turn.');
  expect(stdout).toContain('The model was told: Outcome unknown');
});
