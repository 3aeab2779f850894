// The error reference, docs/reference/errors.md. Its codes, classes and statuses come from the sources; the texts about
// causes and
// actions are written in the page. npm run errors adds and removes rows; npm run check compares, and requires texts for
// new ones.
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { readApiReports } from './doc-names.ts';
import { type FoundCode, findCodes } from './errors/find-codes.ts';

const root = join(import.meta.dirname, '..');
const PAGE = 'docs/reference/errors.md';
/** Responses whose code is not next to its status. */
const STATUSES: Readonly<Record<string, string>> = {
  'no-json': '415',
  'store-busy': '503',
  'unknown-outcome': '503',
  closing: '503',
  'store-setup': '503',
  'no-task-api': 'any',
};

/** The tables of the page by heading, and which codes each has. */
const TABLES: Readonly<Record<string, (found: FoundCode) => boolean>> = {
  'Agents, tools and cancellation': (found) => isConstant(found) && /^packages\/(core|tools|ai-sdk)\//.test(found.file),
  'Tasks and stores': (found) => isConstant(found) && hasClass(found) && /^packages\/(tasks|server)\//.test(found.file),
  'Stored with a failed task': (found) => isConstant(found) && !hasClass(found) && !isCommand(found),
  'The whoa command': (found) => isConstant(found) && isCommand(found),
  'HTTP responses': (found) => !isConstant(found),
};

function isConstant({ code }: FoundCode): boolean {
  return /^[A-Z]/.test(code);
}

function hasClass({ errorClass }: FoundCode): boolean {
  return errorClass !== undefined;
}

function isCommand({ file }: FoundCode): boolean {
  return file.startsWith('packages/whoa/');
}

/** Returns the page with one row for each code, and its problems. Rows keep their texts. */
export function updatePage(page: string, codes: readonly FoundCode[]): { page: string; problems: string[] } {
  const problems: string[] = [];
  for (const one of codes) {
    if (!Object.values(TABLES).some((accepts) => accepts(one)))
      problems.push(`${one.code}: no table has it (${one.file})`);
  }
  const sections = page.split(/^(?=## )/m).map((section) => {
    const accepts = TABLES[/^## (.*)\n/.exec(section)?.[1] ?? ''];
    if (accepts === undefined) return section;
    const rows = toRows(section, codes.filter(accepts));
    for (const [code, , ...texts] of rows)
      if (texts.some((text) => text === '')) problems.push(`${code}: say in ${PAGE} when it occurs and what to do`);
    const table = rows.map((cells) => `| ${cells.join(' | ')} |\n`).join('');
    return section.replace(/^(\|[-|]+\|\n)(?:\|.*\n)*/m, (_all, line: string) => line + table);
  });
  return { page: sections.join(''), problems };
}

type Row = readonly [code: string, origin: string, when: string, action: string];

function toRows(section: string, codes: readonly FoundCode[]): Row[] {
  const written = new Map(
    Array.from(section.matchAll(/^\| (`[^`]+`) \| [^|]* \| ([^|]*) \| ([^|]*) \|$/gm), ([, code, when, action]) => [
      code,
      [when!.trim(), action!.trim()] as const,
    ]),
  );
  return [...new Set(codes.map(({ code }) => code))].sort().map((code) => {
    const [when, action] = written.get(`\`${code}\``) ?? ['', ''];
    return [`\`${code}\``, toOrigin(codes.filter((one) => one.code === code)), when, action];
  });
}

/** Returns the origin of a code: an error class and where it is exported, or the HTTP statuses. */
function toOrigin(found: readonly FoundCode[]): string {
  const [{ code, errorClass }] = found as [FoundCode];
  if (!isConstant({ code, file: '' })) {
    const statuses = found.flatMap(({ status }) => (status === undefined ? [] : [String(status)]));
    return [...new Set([...statuses, ...(STATUSES[code] === undefined ? [] : [STATUSES[code]])])].sort().join(', ');
  }
  const name = errorClass ?? found.find(hasClass)?.errorClass;
  if (name === undefined) return '`outcome.error`';
  const entry = entries.find(([specifier, words]) => !specifier.endsWith('/internal') && words.has(name))?.[0];
  return entry === undefined ? `${name}, not exported` : `\`${name}\` from \`${entry}\``;
}

function readCodes(): FoundCode[] {
  const files = globSync('packages/*/src/**/*.ts', {
    cwd: root,
    exclude: ['**/*.test.ts', '**/testing/**', 'packages/{check,console}/**'],
  });
  return files.flatMap((file) => findCodes(file, readFileSync(join(root, file), 'utf8')));
}

const entries = [...readApiReports().entries];

if (import.meta.main) {
  const { values } = parseArgs({ options: { write: { type: 'boolean', default: false } } });
  const old = readFileSync(join(root, PAGE), 'utf8');
  const { page, problems } = updatePage(old, readCodes());
  if (values.write) writeFileSync(join(root, PAGE), page);
  else if (page !== old) problems.push(`${PAGE} does not list what the sources have; run npm run errors`);
  for (const problem of problems) console.error(problem);
  process.exitCode = problems.length === 0 ? 0 : 1;
}
