import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { read } from './docs/pages.ts';

const root = join(import.meta.dirname, '..');
const run = (...args: string[]) => promisify(execFile)(process.execPath, args, { cwd: root });

/** Pages wrap long lines. */
const unwrapped = (text: string): string => text.replaceAll(/\s+/g, ' ').trim();

test.for(['README.md', 'docs/guides/your-own-loop.md'])(
  'the two outputs in %s are those of the example',
  async (page) => {
    const { stdout, stderr } = await run('--conditions=@whoa/source', 'examples/keep-streamtext.ts');
    expect(stderr).toBe('');
    const [plain, guarded] = [...read(page).matchAll(/<pre>\n(.*?)<\/pre>/gs)].map(([, text]) => text!);
    expect(unwrapped(stdout)).toBe(unwrapped(`Plain streamText ${plain} A stoppable turn ${guarded}`));
  },
);

test.for(['langgraph', 'mastra'])('the recipe for %s runs where the framework installs', async (name, { skip }) => {
  const { stdout } = await run('scripts/recipe.ts', name);
  if (stdout.startsWith('skipped')) skip(stdout.trim());
  expect(stdout).toContain('send_report: unknown');
  expect(stdout).toContain('The provider accepted the next turn.');
  expect(stdout).toContain('The model was told: Outcome unknown');
});
