import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { read } from './docs/pages.ts';

const root = join(import.meta.dirname, '..');
const run = (...args: string[]) => promisify(execFile)(process.execPath, args, { cwd: root });

const toLines = (text: string): string[] => text.split('\n').flatMap((line) => line.trim() || []);
/** A page wraps long lines, and indents the rest. */
const toUnwrapped = (text: string): string[] => toLines(text.replaceAll(/\n {2}/g, ' '));

test('the two outputs in README.md are those of the example', async () => {
  const { stdout, stderr } = await run('--conditions=@whoa/source', 'examples/keep-streamtext.ts');
  expect(stderr).toBe('');
  const [plain, guarded] = [...read('README.md').matchAll(/<pre>\n(.*?)<\/pre>/gs)].map(([, text]) => text!);
  const shown = ['Plain streamText', ...toUnwrapped(plain!), 'A stoppable turn', ...toUnwrapped(guarded!)];
  expect(toLines(stdout)).toEqual(shown);
});
