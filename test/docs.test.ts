// Checks that the docs match the repository: code of files word for word, and every file, section and command that they name.
import { existsSync, globSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { sidebar } from '../docs/.vitepress/sidebar.ts';
import { COMMANDS } from '../packages/whoa/src/command-table.ts';
import { findBlocks, PAGES, ROOT, read, readProse } from './docs/pages.ts';

test.each(PAGES)('%s shows its files word for word, and JSON that is JSON', (page) => {
  for (const { language, about, text } of findBlocks(page)) {
    const [, file] = /^file=(\S+)$/.exec(about) ?? [];
    if (file !== undefined) expect(text).toBe(read(file));
    if (language === 'json') expect(() => JSON.parse(text) as unknown).not.toThrow();
  }
});

test.each(PAGES)('all links of %s exist', (page) => {
  for (const [, link = ''] of readProse(page).matchAll(/\]\(([^)\s]+)\)/g)) {
    if (/^https?:/.test(link) && !link.startsWith(FILES)) continue;
    const [path = '', section] = link.replace(FILES, '').split('#');
    const target = path === '' ? page : join(link.startsWith(FILES) ? '' : dirname(page), path);
    expect(existsSync(join(ROOT, target)), `${link} in ${page}`).toBe(true);
    if (section !== undefined) expect(findSections(target), `${link} in ${page}`).toContain(section);
  }
});

test.each(PAGES.filter((page) => page.startsWith('packages/')))(
  '%s has absolute addresses: registries show it elsewhere',
  (page) => {
    const links = [...read(page).matchAll(/\]\(([^)\s]+)\)|(?:src|href)="([^"]+)"/g)].map(
      ([, link, attribute]) => link ?? attribute,
    );
    expect(links.filter((link) => !/^(?:https:|#)/.test(link!))).toEqual([]);
  },
);

test.each(PAGES)('%s names commands that are there', (page) => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
  const text = read(page);
  const found = (pattern: RegExp): string[] => [...text.matchAll(pattern)].map(([, name = '']) => name);
  for (const name of found(/\bnpm run (?:-s )?([\w:]+)/g)) expect(Object.keys(scripts)).toContain(name);
  for (const name of found(/\bnpm run bench -- ([\w-]+)/g)) expect(listNames('bench')).toContain(name);
  for (const name of found(/\bnpm run long -- ([\w-]+)/g)) expect(listNames('test/long')).toContain(name);
  for (const name of found(/\b(?:^whoa|\$ whoa|`whoa) ([a-z]+)\b/gm)) {
    expect(Object.keys(COMMANDS), `whoa ${name} in ${page}`).toContain(name);
  }
});

test.each(PAGES)('%s names files that are there', (page) => {
  const folders = ['', 'examples', ...globSync('packages/*/src', { cwd: ROOT })];
  for (const [, path = ''] of readProse(page).matchAll(/`(?:node )?([\w-]+(?:\/[\w.-]+)*\.(?:ts|mjs|md))`/g)) {
    // `core/stop/token/token.ts` is short for the file in that package's sources.
    const places = [...folders.map((folder) => join(folder, path)), join('packages', path.replace('/', '/src/'))];
    const isThere = places.some((location) => existsSync(join(ROOT, location)));
    expect(isThere || YOURS.includes(path), `${path} in ${page}`).toBe(true);
  }
});

test.each(PAGES)('%s names tests that are there', (page) => {
  for (const [, path = ''] of readProse(page).matchAll(/`((?:test|packages)\/[\w/-]+)`/g)) {
    const isThere = [path, `${path}.ts`, `${path}.test.ts`, `${path}.int.test.ts`, `${path}.nightly.test.ts`].some(
      (file) => existsSync(join(ROOT, file)),
    );
    expect(isThere, `${path} in ${page}`).toBe(true);
  }
});

test('every threat of the threat model has its test', () => {
  const threats = [...read('docs/security.md').matchAll(/^\| (.*) \| .* \| (.*) \|$/gm)];
  const untested = threats.filter(([, threat, proof]) => threat !== 'threat' && !/`(?:test|packages)\//.test(proof!));
  expect(threats.length).toBeGreaterThan(20);
  expect(untested.map(([row]) => row)).toEqual([]);
});

test('until the release, a page that starts or installs Whoa first says that it needs a clone', () => {
  const pages = PAGES.filter((page) => page !== 'CONTRIBUTING.md' && !/^docs\/(?:evidence|reference)\//.test(page));
  const START = /^whoa (?:demo|check|console|doctor|run ")|^npm run pack\b/m;
  const starts = pages
    .map((page) => ({ page, before: read(page).split(START) }))
    .filter(({ before }) => before.length > 1);
  expect(starts.length).toBeGreaterThan(10);
  for (const {
    page,
    before: [text],
  } of starts)
    expect(text!, page).toMatch(/not on npm yet[\s\S]*\bclone\b/i);
});

test('no command, setting or example has an ellipsis where a reader puts a value: pasted, it is one', () => {
  // A header with U+2026 throws in every HTTP client.
  const VALUE = /\b[A-Z][A-Z_]+(?:=|": ")[^\s"]*…/;
  expect(['export OPENAI_API_KEY=…', '"TOKEN": "whsec_…"'].every((line) => VALUE.test(line))).toBe(true);
  const files = [
    ...PAGES,
    ...globSync('{examples,deploy}/**/*.{md,ts,tsx,mjs,py,yaml}', { cwd: ROOT, exclude: ['**/node_modules'] }),
  ];
  const found = files.flatMap((file) =>
    read(file)
      .split('\n')
      .filter((line) => VALUE.test(line))
      .map((line) => `${file}: ${line}`),
  );
  expect(found).toEqual([]);
  const shown = PAGES.flatMap(findBlocks).filter(({ language }) => ['sh', 'bash', 'console'].includes(language));
  expect(shown.filter(({ text }) => text.includes('…'))).toEqual([]);
});

test('examples open a database that instances share with a wait: without one, the second instance to start ends', () => {
  const files = [...PAGES, ...globSync('examples/**/*.ts', { cwd: ROOT, exclude: ['**/node_modules'] })];
  const opened = files.flatMap((file) => read(file).match(/new DatabaseSync\([^\n]*/g) ?? []);
  expect(opened.length).toBeGreaterThan(4);
  for (const call of opened) expect(call).toContain('{ timeout: ');
});

test('no page has an editor start whatever npx finds', () => {
  const settings = PAGES.flatMap(findBlocks).filter(
    ({ language, text }) => language !== '' && /["']acp["']/.test(text),
  );
  expect(settings.length).toBeGreaterThanOrEqual(3);
  for (const { text } of settings) expect(text).toMatch(/command"? ?[:=] ?"\//);
});

test('every page is in the navigation, once', () => {
  const files = PAGES.filter((page) => page.startsWith('docs/')).map((page) =>
    page.slice('docs'.length).replace(/(?:index)?\.md$/, ''),
  );
  expect(findLinks(sidebar).toSorted()).toEqual(files.toSorted());
});

test('the page of examples links to every example', () => {
  const isSetting = (file: string): boolean => /(^|\/)(package(-lock)?|tsconfig[\w.]*)\.json$/.test(file);
  const files = globSync('examples/**/*.*', { cwd: ROOT, exclude: ['**/node_modules'] }).filter(
    (file) => !isSetting(file),
  );
  const linked = new Set(Array.from(read('docs/examples.md').matchAll(/\]\(\.\.\/([^)]+)\)/g), ([, link]) => link!));
  // A folder with a README is one example.
  const folders = files.filter((file) => file.endsWith('/README.md'));
  const single = files.filter((file) => !folders.some((readme) => file.startsWith(`${dirname(readme)}/`)));
  expect([...single, ...folders].filter((file) => !linked.has(file))).toEqual([]);
});

test('every line of the feature list begins with a link, and every guide is in it', () => {
  const [, ...sections] = read('docs/features.md').split('\n## ');
  const lines = sections.flatMap((section) => section.trim().split('\n').slice(2));
  expect(lines.length).toBeGreaterThan(50);
  expect(lines.filter((line) => !/^- \[.+?\]\([^)]+\.md(?:#[^)]+)?\): .+\.$/.test(line))).toEqual([]);
  const linked = new Set(lines.map((line) => `docs/${/\]\(([^)#]+)/.exec(line)![1]}`));
  const folders = ['docs/guides/', 'docs/how-to/', 'docs/operations/'];
  const guides = PAGES.filter((page) => folders.some((folder) => page.startsWith(folder)));
  expect(guides.filter((page) => !linked.has(page) && page !== FOR_MAINTAINERS)).toEqual([]);
});

test('the page of platforms names the versions that tests run on', () => {
  const page = read('docs/stability.md');
  const toMinor = (version: string): string => version.split('.').slice(0, 2).join('.');
  const [, nodes = ''] = /^const NODES = \[(.*)\];$/m.exec(read('scripts/try-packed.ts')) ?? [];
  const versions = nodes.match(/[\d.]+/g) ?? [];
  expect(versions.length).toBeGreaterThan(1);
  for (const version of versions) expect(page).toMatch(new RegExp(`Node .*\\b${toMinor(version)}\\b`));
  const { dependencies } = JSON.parse(read('test/runtimes/package.json')) as { dependencies: Record<string, string> };
  expect(page).toContain(`Bun ${toMinor(dependencies['bun']!)}, Deno ${toMinor(dependencies['deno']!)}`);
});

/** The repository's address for files, which packages link to because their pages are on other sites. */
const FILES = `${(JSON.parse(read('package.json')) as { repository: { url: string } }).repository.url.slice(4, -4)}/blob/main/`;

/** A guide that describes no feature. */
const FOR_MAINTAINERS = 'docs/guides/workers/change-a-rule.md';

/** Files that are the reader's. */
const YOURS = ['first.ts', 'whoa.config.ts'];

type Entry = (typeof sidebar)[number];

function findLinks(entries: readonly Entry[]): string[] {
  return entries.flatMap(({ link, items = [] }) => [...(link === undefined ? [] : [link]), ...findLinks(items)]);
}

/** The sections of a page, as links name them. */
function findSections(page: string): string[] {
  return [...readProse(page).matchAll(/^#+ (.*)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

function listNames(folder: string): string[] {
  return globSync('*.ts', { cwd: join(ROOT, folder) }).map((file) => file.replace(/\.ts$/, ''));
}
