// Parses the SQL files of the Postgres store with the parsers of Postgres, for SQL and for the text between $$, and
// reports syntax errors, lines that are too long, and operations that do not name their locks.
// test/tasks/postgres-functions.int.test.ts checks what only a server knows, such as whether a column exists.
import { loadModule, parsePlPgSQLSync, parseSync } from 'libpg-query';
import { RULE_FILES } from '../packages/tasks/src/ledger/postgres/sql/rule-files.ts';

await loadModule();

const MAX_COLUMNS = 140;
/** A generated table may be wider. */
const WRITTEN = '-- Written by';
const FUNCTION = /((?:--.*\n)*)CREATE FUNCTION fn\.(\w+)\((?:.|\n)*?\$\$(?:.|\n)*?\$\$;/g;
const HEADER = /^-- Reads: .+\. (Locks: .+\. Writes: .+|Locks and writes: nothing)\. Returns: .+\.$/m;
/** Part of every statement that TypeScript sends. */
const ALWAYS_CALLED = ['enter', 'pending_notifications'];

/** Returns the problems in files that call each other's functions. */
export function lintSql(files: Readonly<Record<string, string>>): readonly string[] {
  const all = Object.values(files).join('\n');
  const called = new Set([...all.matchAll(/(?<!FUNCTION )\bfn\.(\w+)\(/g)].map(([, name]) => name));
  return Object.entries(files).flatMap(([file, text]) => {
    const functions = [...text.matchAll(FUNCTION)].flatMap(([definition, comment = '', name = '']) => {
      // If no SQL calls it, TypeScript does.
      const isOperation = !called.has(name) && !ALWAYS_CALLED.includes(name);
      const isSilent = isOperation && !HEADER.test(comment);
      return [
        ...(isSilent ? [`${name}: say above it what it Reads:, Locks:, Writes: and Returns:`] : []),
        ...findRefusals(name, () => definition.includes('LANGUAGE plpgsql') && parsePlPgSQLSync(definition)),
      ];
    });
    const problems = [...lintLines(text), ...findRefusals('SQL', () => parseSync(text)), ...functions];
    return problems.map((problem) => `${file}: ${problem}`);
  });
}

function lintLines(text: string): readonly string[] {
  const lines = text.split('\n').flatMap((line, index) => {
    const isLong = line.length > MAX_COLUMNS && !text.startsWith(WRITTEN);
    const long = isLong ? [`line ${index + 1} has ${line.length} characters`] : [];
    return /\s$|\t/.test(line) ? [...long, `line ${index + 1} has a tab, or ends with a space`] : long;
  });
  return /[^\n]\n$/.test(text) ? lines : [...lines, 'it does not end with one line break'];
}

function findRefusals(name: string, parse: () => unknown): readonly string[] {
  try {
    parse();
    return [];
  } catch (error) {
    return [`${name}: ${(error as Error).message}`];
  }
}

if (import.meta.main) {
  const problems = lintSql(RULE_FILES);
  for (const problem of problems) console.error(problem);
  process.exitCode = problems.length === 0 ? 0 : 1;
}
