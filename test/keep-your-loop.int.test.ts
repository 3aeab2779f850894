import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { read } from './docs/pages.ts';

const root = join(import.meta.dirname, '..');
const run = (...args: string[]) => promisify(execFile)(process.execPath, args, { cwd: root });

/** Pages wrap long lines. */
const unwrapped = (text: string): string => text.replaceAll(/\s+/g, ' ').trim();

test('the two outputs in README.md are those of the example', async () => {
  const { stdout, stderr } = await run('--conditions=@whoa/source', 'examples/keep-streamtext.ts');
  expect(stderr).toBe('');
  const [plain, guarded] = [...read('README.md').matchAll(/<pre>\n(.*?)<\/pre>/gs)].map(([, text]) => text!);
  expect(unwrapped(stdout)).toBe(unwrapped(`Plain streamText ${plain} A stoppable turn ${guarded}`));
});
