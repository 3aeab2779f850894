// Rejects retired names: each concept has one name, and the old ones must not come back. Comments, strings and prose
// may use them.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface RetiredNames {
  /** Each with its new name. */
  readonly identifiers: Readonly<Record<string, string>>;
  /** Names that are retired in one folder, by the start of its paths, because they mean something else in others. */
  readonly folders: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** Each with the new beginning of such names. */
  readonly endings: Readonly<Record<string, string>>;
  /** Names that may have such an ending: external ones, and those where the ending is part of the idea. */
  readonly exceptions: readonly string[];
  /** Names of files and folders, up to the first dot. */
  readonly files: Readonly<Record<string, string>>;
}

const root = join(import.meta.dirname, '..');
/** Comments, texts (the values inside templates included) and regular expressions. */
const TEXTS =
  /\/\*[\s\S]*?\*\/|\/\/.*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`|(?<=[(,=:[!&|?]\s*)\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\//g;
/** The same in Lua and SQL. */
const RULE_TEXTS = /--.*|\/\*[\s\S]*?\*\/|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"/g;
const TS_BLOCK = /^```(?:ts|js)\b[^\n]*\n([\s\S]*?)^```/gm;
const WORD = /[A-Za-z_$][\w$]*/g;

export function readRetiredNames(): RetiredNames {
  return JSON.parse(readFileSync(join(import.meta.dirname, 'retired-names.json'), 'utf8')) as RetiredNames;
}

/** Lists the retired names in a file: in its path, and in its code or in the code blocks of a page. */
export function findRetired(
  path: string,
  text: string,
  { identifiers: everywhere, folders, endings, exceptions, files }: RetiredNames,
): string[] {
  const found = new Set<string>();
  const here = Object.entries(folders).flatMap(([folder, names]) => (path.startsWith(folder) ? [names] : []));
  const identifiers = Object.assign({}, everywhere, ...here) as RetiredNames['identifiers'];
  for (const segment of path.split('/')) {
    const name = segment.split('.')[0]!;
    if (Object.hasOwn(files, name)) found.add(`${path}: '${name}' is now '${files[name]}'`);
  }
  for (const [word] of extractCode(path, text).matchAll(WORD)) {
    if (Object.hasOwn(identifiers, word)) found.add(`${path}: '${word}' is now '${identifiers[word]}'`);
    for (const [ending, start] of Object.entries(endings)) {
      if (word.endsWith(ending) && word !== ending && !exceptions.includes(word))
        found.add(`${path}: '${word}' should begin with '${start}'`);
    }
  }
  return [...found];
}

function extractCode(path: string, text: string): string {
  if (/\.(lua|sql)$/.test(path)) return text.replace(RULE_TEXTS, ' ');
  const isPage = path.endsWith('.md');
  if (!isPage && !/\.(ts|js|mjs)$/.test(path)) return '';
  const code = isPage ? Array.from(text.matchAll(TS_BLOCK), ([, block]) => block).join('\n') : text;
  return code.replace(TEXTS, ' ');
}

if (import.meta.main) {
  const names = readRetiredNames();
  const paths = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
  });
  const existing = paths.split('\0').filter((path) => path !== '' && !path.startsWith('test/recordings/'));
  const found = existing.flatMap((path) => findRetired(path, readIfThere(path), names));
  for (const line of found) console.error(line);
  process.exitCode = existing.length > 0 && found.length === 0 ? 0 : 1;
}

/** A file that was removed and not committed is still listed. */
function readIfThere(path: string): string {
  try {
    return readFileSync(join(root, path), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  }
}
