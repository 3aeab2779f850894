// One report for each entry of each package: every public name with its declaration, and the types that these use. They are
// checked in, so that changes to the public API show in review: npm run api writes them, npm run check compares them and
// requires doc comments.
import { existsSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { lintDocs } from './api/doc-lint.ts';
import { type Declaration, type Entry, findReachable, type PublicName, ROOT, readEntries } from './api/surface.ts';

const { values } = parseArgs({ options: { write: { type: 'boolean', default: false } } });

/** How many names each package exported at 4b21d33, over all its entries. Later packages have no such number. */
const BEFORE: Readonly<Record<string, number>> = { acp: 21, 'ai-sdk': 29, core: 162, tasks: 105, tools: 64, whoa: 57 };

const entries = readEntries();
const reports = new Map(entries.map((entry) => [`api/${entry.folder}${entry.report}.api.md`, report(entry)]));
reports.set('api/README.md', summary(entries));

const problems: string[] = lintDocs(entries);
for (const [path, wanted] of reports) {
  const file = join(ROOT, path);
  if (existsSync(file) && readFileSync(file, 'utf8') === wanted) continue;
  if (!values.write)
    problems.push(`${path} is not what the package shows; look at the difference that npm run api makes`);
  else writeFileSync(file, wanted);
}
for (const path of globSync('api/*', { cwd: ROOT })) {
  if (reports.has(path)) continue;
  if (values.write) rmSync(join(ROOT, path));
  else problems.push(`${path} reports on an entry that is not there; npm run api removes it`);
}
for (const problem of problems) console.error(problem);
process.exitCode = problems.length === 0 ? 0 : 1;

function report({ folder, specifier, names }: Entry): string {
  const own = findDeclarations(names);
  const passedOn = names.flatMap(({ name, from }) => (from === undefined ? [] : `export { ${name} } from '${from}';`));
  // Names that another entry of the package exports are in that entry's report.
  const elsewhere = new Set(
    entries.filter((entry) => entry.folder === folder).flatMap((entry) => findDeclarations(entry.names)),
  );
  const reachable = findReachable(own, elsewhere);
  return [
    `# \`${specifier}\`: ${names.length} names`,
    'Written by `npm run api`.',
    ...section('', [...passedOn, ...own.map(({ text }) => text)]),
    ...section(
      '## Not exported, but part of the above',
      reachable.map(({ text }) => text),
    ),
    '',
  ]
    .join('\n\n')
    .replace(/\n+$/, '\n');
}

function findDeclarations(names: readonly PublicName[]): Declaration[] {
  return names.flatMap(({ declaration }) => declaration ?? []);
}

function section(heading: string, texts: readonly string[]): string[] {
  if (texts.length === 0) return [];
  const code = `\`\`\`ts\n${texts.join('\n')}\n\`\`\``;
  return heading === '' ? [code] : [heading, code];
}

function summary(all: readonly Entry[]): string {
  const rows = [...Map.groupBy(all, ({ folder }) => folder)].map(([folder, own]) => {
    const now = own.reduce((sum, { names }) => sum + names.length, 0);
    const parts = own.map(({ specifier, names }) => `\`${specifier}\` ${names.length}`).join(', ');
    return { folder, before: BEFORE[folder], now, parts };
  });
  const older = rows.filter(({ before }) => before !== undefined);
  const sum = (of: 'before' | 'now'): number => older.reduce((total, row) => total + row[of]!, 0);
  return [
    '# How many names the packages show',
    '',
    'Written by `npm run api`. "Before" is commit 4b21d33.',
    '',
    '| package | before | now | entries |',
    '|---|---|---|---|',
    ...rows.map(({ folder, before, now, parts }) => `| ${folder} | ${before ?? ''} | ${now} | ${parts} |`),
    `| the ${older.length} that were there before | ${sum('before')} | ${sum('now')} | ${percent(sum('now'), sum('before'))} % |`,
    '',
  ].join('\n');
}

function percent(part: number, whole: number): number {
  return Math.round((100 * part) / whole);
}
