// What the docs show is what is tested: their code is the code of a file, word for word.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');

/** Code blocks that say which file they are: ```ts file=examples/x.ts */
function blocksOf(page: string): { file: string; code: string }[] {
  return [...read(page).matchAll(/^```ts file=(\S+)\n(.*?)^```$/gms)].map(([, file = '', code = '']) => ({
    file,
    code,
  }));
}

test.each(['docs/write-a-tool.md'])('%s shows its files word for word', (page) => {
  const blocks = blocksOf(page);
  expect(blocks.length).toBeGreaterThan(0);
  for (const { file, code } of blocks) expect(code).toBe(read(file));
});
