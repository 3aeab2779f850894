// Fails on phrases that sound translated in the pages that people read, and suggests plain ones. Code is not checked.
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Regular expressions, each with what to write instead. A space stands for any white space. */
export type PlainWords = Readonly<Record<string, string>>;

const root = join(import.meta.dirname, '..');
/** Add help texts, error messages and test titles here once they pass. */
const PAGES: readonly string[] = ['*.md', 'docs/**/*.md', 'packages/*/README.md'];
/** Written by TypeDoc, and what was released. */
const EXCLUDED = ['docs/reference/api', 'CHANGELOG.md'];
/** The tagline, which may say it shorter. */
const ALLOWED: readonly string[] = ['AI agents that stop when told'];
/** Blocks between fences or `<pre>`, spans in backticks, and addresses of links. */
const CODE = /^ *```[^\n]*\n[\s\S]*?^ *```|<pre>[\s\S]*?<\/pre>|`[^`\n]+`|\]\([^)]*\)/gm;

export function readPlainWords(): PlainWords {
  return JSON.parse(readFileSync(join(import.meta.dirname, 'plain-words.json'), 'utf8')) as PlainWords;
}

/** Lists the phrases of a page that have a plainer form, with their lines. */
export function findUnplain(page: string, text: string, words: PlainWords): string[] {
  const hide = (part: string): string => part.replace(/[^\n]/g, '\0');
  const prose = ALLOWED.reduce((rest, phrase) => rest.replaceAll(phrase, hide), text.replace(CODE, hide));
  return Object.entries(words).flatMap(([phrase, instead]) => {
    const pattern = new RegExp(`\\b(?:${phrase.replaceAll(' ', '\\s+')})\\b`, 'gi');
    return Array.from(prose.matchAll(pattern), ({ 0: found, index }) => {
      const line = prose.slice(0, index).split('\n').length;
      return `${page}:${line}: '${found.replace(/\s+/g, ' ')}'; write: ${instead}`;
    });
  });
}

if (import.meta.main) {
  const words = readPlainWords();
  const pages = globSync([...PAGES], { cwd: root, exclude: EXCLUDED });
  const found = pages.flatMap((page) => findUnplain(page, readFileSync(join(root, page), 'utf8'), words));
  for (const line of found) console.error(line);
  process.exitCode = pages.length > 20 && found.length === 0 ? 0 : 1;
}
