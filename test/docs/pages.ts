// The published pages, and their content.
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const ROOT: string = join(import.meta.dirname, '../..');

export const PAGES: readonly string[] = globSync(['*.md', 'docs/**/*.md', 'packages/*/README.md'], {
  cwd: ROOT,
  exclude: ['docs/reference/api'], // written by TypeDoc
}).toSorted();

/** A fenced block. Its first line may contain more than the language: ```ts run, ```ts file=examples/x.ts */
export interface Block {
  readonly page: string;
  readonly line: number;
  readonly language: string;
  /** The text after the language. */
  readonly about: string;
  readonly text: string;
}

export function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

export const findBlocks = (page: string): Block[] => splitBlocks(page, read(page));

/** Returns the blocks of a page's text. */
export function splitBlocks(page: string, text: string): Block[] {
  return [...text.matchAll(/^```(\w*) ?([^\n]*)\n(.*?)^```$/gms)].map((found) => {
    const [, language = '', about = '', code = ''] = found;
    return { page, line: text.slice(0, found.index).split('\n').length, language, about, text: code };
  });
}

/** The sources whose doc comments may hold examples. */
export const SOURCES: readonly string[] = globSync('packages/*/src/**/*.ts', {
  cwd: ROOT,
  exclude: ['**/*.test.ts'],
}).toSorted();

/** The TypeScript blocks in the doc comments of a source. */
export function findExamples(source: string): Block[] {
  const text = read(source);
  return [...text.matchAll(/^ *\* ```ts ?([^\n]*)\n(.*?)^ *\* ```$/gms)].map((found) => {
    const [, about = '', code = ''] = found;
    const line = text.slice(0, found.index).split('\n').length;
    return { page: source, line, language: 'ts', about, text: code.replaceAll(/^ *\* ?/gm, '') };
  });
}

/** A page without its blocks. */
export function readProse(page: string): string {
  return read(page).replaceAll(/^```.*?^```$/gms, '');
}
