// Until the release our names are not reserved on the registry, so nothing here may ask it for one: whoever takes a name
// would run code on the machines of everyone who follows a page.
import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { OUR_NAMES } from '../scripts/local-packages.ts';
import { ROOT, read } from './docs/pages.ts';

const FILES = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], { cwd: ROOT, encoding: 'utf8' })
  .trim()
  .split('\n')
  .filter((file) => !/\.(?:png|svg|ico|woff2?|gif)$/.test(file));

/** They install from a registry on loopback that has the packages of this clone, or name what must not be written. */
const EXEMPT: readonly string[] = [
  'scripts/release/stranger.ts',
  // Hints repeat the words with which the user has just started the command.
  'packages/whoa/src/terminal/command-name.ts',
  'test/command/many.int.test.ts',
  'CONTRIBUTING.md',
  'test/unpublished.test.ts',
  // History: what was written before.
  'CHANGELOG.md',
];

/** Programs that install what they are given, or download what they run. */
const INSTALLS = /\b(?:(?:npm|pnpm|yarn|bun|deno) (?:install|i|add|exec|x|dlx|create|init)|npx|pnpx|bunx)\b(.*)/g;
/** A name is read from the registry, wherever it stands. */
const ADDRESS = /(?:\bnpm:|unpkg\.com\/|jsdelivr\.net\/npm\/|esm\.sh\/|skypack\.dev\/)(@whoa\/|whoa\b)/;

const isOurName = (word: string): boolean => OUR_NAMES.includes(word.replace(/(?<=.)@[^/]*$/, ''));

/** Returns the names of ours that a line would have a program download. A span of code ends with its backtick. */
function findDownloads(line: string): string[] {
  const found = line.split('`').flatMap((span) =>
    [
      ...span
        .replaceAll(/['",()[\]]+/g, ' ')
        .replaceAll(/ +/g, ' ')
        .matchAll(INSTALLS),
    ].flatMap(([, rest]) =>
      rest!
        .split(/ (?:&&|\|\||;|\|) /)[0]!
        .split(/[\s:;]+/)
        .filter(isOurName),
    ),
  );
  const [, address] = ADDRESS.exec(line) ?? [];
  return address === undefined ? found : [...found, address];
}

test.each([
  ['npm install whoa @whoa/bullmq bullmq', ['whoa', '@whoa/bullmq']],
  ['`npx --yes whoa@0.1.0 demo`', ['whoa@0.1.0']],
  ["run('npm', 'install', '@whoa/core', 'zod')", ['@whoa/core']],
  ['pnpm add -D @whoa/check', ['@whoa/check']],
  ["import { guard } from 'npm:@whoa/core';", ['@whoa/']],
  ['npm install ./whoa/whoa-core.tgz zod', []],
  ['npm install zod && whoa run hello', []],
  ['After `npm install zod`, `whoa` is on the path.', []],
])('%s: the names %j would be downloaded', (line, names) => {
  expect(findDownloads(line)).toEqual(names);
});

test('no page, script, example or message installs one of our names from a registry', () => {
  const found = FILES.filter((file) => !EXEMPT.includes(file)).flatMap((file) =>
    read(file)
      .split('\n')
      .flatMap((line, i) => findDownloads(line).map((name) => `${file}:${i + 1} ${name}`)),
  );
  expect(found).toEqual([]);
});

interface Manifest {
  readonly workspaces?: readonly string[];
  readonly [field: string]: unknown;
}

const DEPENDENCIES = ['dependencies', 'devDependencies', 'optionalDependencies', 'peerDependencies'];

test('outside of the workspaces, a package.json takes our packages from files', () => {
  const files = FILES.filter((file) => /(?:^|\/)package\.json$/.test(file) && !/^packages\/[^/]+\/package/.test(file));
  expect(files.length).toBeGreaterThan(5);
  for (const file of files) {
    const manifest = JSON.parse(read(file)) as Manifest;
    for (const kind of DEPENDENCIES) {
      const own = Object.entries((manifest[kind] ?? {}) as Record<string, string>).filter(([name]) => isOurName(name));
      for (const [name, from] of own) expect(from, `${name} in ${file}`).toMatch(/^file:whoa\/whoa[\w-]*\.tgz$/);
    }
  }
});

test('the lock file of the clone links our packages to their folders', () => {
  const { packages } = JSON.parse(read('package-lock.json')) as {
    packages: Record<string, { link?: boolean; resolved?: string }>;
  };
  const own = Object.entries(packages).filter(([path]) =>
    OUR_NAMES.some((name) => path.endsWith(`node_modules/${name}`)),
  );
  expect(own.map(([path]) => path).toSorted()).toEqual(OUR_NAMES.map((name) => `node_modules/${name}`).toSorted());
  for (const [, { link, resolved }] of own) {
    expect(link).toBe(true);
    expect(resolved).toMatch(/^packages\//);
  }
});
