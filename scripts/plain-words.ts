// Fails on phrases that sound translated in what people read, and suggests plain ones: pages, error messages, help and test
// titles. Comments are checked in every source file.
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { findTexts } from './texts-in-code.ts';

/** Regular expressions, each with plainer words. A space matches any white space. */
export type PlainWords = Readonly<Record<string, string>>;

const root = join(import.meta.dirname, '..');
const PAGES: readonly string[] = ['*.md', 'docs/**/*.md', 'packages/*/README.md'];
const CODE_FILES: readonly string[] = ['packages/*/src/**/*.{ts,tsx}', 'test/**/*.test.ts'];
const COMMENTED_FILES: readonly string[] = [
  '{bench,examples,peers,scripts,test}/**/*.{ts,tsx,js,mjs}',
  'packages/*/src/**/*.{ts,tsx,lua,sql}',
];
/** Written by TypeDoc. */
const EXCLUDED = ['docs/reference/api'];
/** The tagline, which may be shorter. */
const ALLOWED: readonly string[] = ['AI agents that stop when told'];
/** Blocks between fences or `<pre>`, spans in backticks, and addresses of links. */
const CODE = /^ *```[^\n]*\n[\s\S]*?^ *```|<pre>[\s\S]*?<\/pre>|`[^`\n]+`|\]\([^)]*\)/gm;

/** A line of a comment in TypeScript, Lua or SQL. */
const COMMENT = /^\s*(?:\/\/|\/\*|\*|--)/;

export function readPlainWords(): PlainWords {
  return JSON.parse(readFileSync(join(import.meta.dirname, 'plain-words.json'), 'utf8')) as PlainWords;
}

function toPattern(phrase: string): RegExp {
  return new RegExp(`\\b(?:${phrase.replaceAll(' ', '\\s+')})\\b`, 'gi');
}

/** Lists the phrases of a page that have a plainer form, with their lines. */
export function findUnplain(page: string, text: string, words: PlainWords): string[] {
  const hide = (part: string): string => part.replace(/[^\n]/g, '\0');
  const prose = ALLOWED.reduce((rest, phrase) => rest.replaceAll(phrase, hide), text.replace(CODE, hide));
  return Object.entries(words).flatMap(([phrase, instead]) => {
    return Array.from(prose.matchAll(toPattern(phrase)), ({ 0: found, index }) => {
      const line = prose.slice(0, index).split('\n').length;
      return `${page}:${line}: '${found.replace(/\s+/g, ' ')}'; write: ${instead}`;
    });
  });
}

/** Lists the same phrases in the error messages, the help and the test titles of a source file. */
export function findUnplainInCode(file: string, source: string, words: PlainWords): string[] {
  // Parsing takes longer than this.
  if (!Object.keys(words).some((phrase) => toPattern(phrase).test(source))) return [];
  return findTexts(file, source).flatMap(({ line, text }) =>
    findUnplain(`${file}:${line}`, text, words).map((found) => found.replace(/^(\S+?:\d+):\d+:/, '$1:')),
  );
}

/** Lists the same phrases in the comments of a source file. */
export function findUnplainInComments(file: string, source: string, words: PlainWords): string[] {
  const lines = source.split('\n').map((line) => (COMMENT.test(line) ? line : ''));
  return findUnplain(file, lines.join('\n'), words);
}

if (import.meta.main) {
  const words = readPlainWords();
  const pages = globSync([...PAGES], { cwd: root, exclude: EXCLUDED });
  const found = pages.flatMap((page) => findUnplain(page, readFileSync(join(root, page), 'utf8'), words));
  const files = globSync([...CODE_FILES], { cwd: root, exclude: ['**/{node_modules,testing}'] });
  found.push(...files.flatMap((file) => findUnplainInCode(file, readFileSync(join(root, file), 'utf8'), words)));
  const commented = globSync([...COMMENTED_FILES], { cwd: root, exclude: ['**/node_modules'] });
  found.push(
    ...commented.flatMap((file) => findUnplainInComments(file, readFileSync(join(root, file), 'utf8'), words)),
  );
  for (const line of found) console.error(line);
  process.exitCode = pages.length > 20 && files.length > 500 && commented.length > 1_000 && found.length === 0 ? 0 : 1;
}
