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
