// Requirements of every package before it can be published.
import { existsSync, globSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT, read } from './docs/pages.ts';

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly private?: boolean;
  readonly [field: string]: unknown;
}

const folders = globSync('packages/*', { cwd: ROOT }).filter((folder) => !readManifest(folder).private);
const shared = readManifest('packages/core');

test.each(folders)('%s can be published', (folder) => {
  const manifest = readManifest(folder);
  const { version, license, engines, type } = shared;
  expect(manifest).toMatchObject({ version, license, engines, type });
  // A list names the programs that bundlers must not drop; all other modules only export.
  const programs = manifest['sideEffects'] === false ? [] : (manifest['sideEffects'] as readonly string[]);
  for (const file of programs) {
    const source = file.replace('./dist/', './src/').replace(/\.js$/, '.ts');
    expect(existsSync(join(ROOT, folder, source)), file).toBe(true);
  }
  expect(manifest['description']).toMatch(/^[A-Z].+\.$/);
  expect(manifest['files']).toEqual(expect.arrayContaining(['dist', '!dist/.tsbuildinfo']));
  if (manifest.name.startsWith('@')) expect(manifest['publishConfig']).toEqual({ access: 'public' });
  // npm puts these two into the package by itself.
  expect(existsSync(join(ROOT, folder, 'README.md')), 'README.md').toBe(true);
  expect(read(join(folder, 'LICENSE'))).toBe(read('LICENSE'));
});

test.each(folders)('%s offers each entry as source, types and code', (folder) => {
  const { './package.json': own, ...entries } = readManifest(folder)['exports'] as Record<string, unknown>;
  expect(own).toBe('./package.json');
  for (const [entry, offer] of Object.entries(entries)) {
    const source = (offer as Record<string, string>)['@whoa/source'] ?? '';
    const file = entry === '.' ? 'index' : source.slice('./src/'.length, -'.ts'.length);
    expect(file, entry).toMatch(/(^|\/)index$/);
    const expected = { '@whoa/source': `./src/${file}.ts`, types: `./dist/${file}.d.ts`, default: `./dist/${file}.js` };
    expect(offer).toEqual(expected);
    expect(existsSync(join(ROOT, folder, 'src', `${file}.ts`)), file).toBe(true);
  }
});

test('packages take each other in the version they have', () => {
  for (const manifest of folders.map(readManifest)) {
    const dependencies = (manifest['dependencies'] ?? {}) as Record<string, string>;
    for (const [name, version] of Object.entries(dependencies)) {
      if (name.startsWith('@whoa/')) expect(version).toBe(shared.version);
    }
  }
});

test('sources that name their own version name the one they have', () => {
  for (const file of globSync('packages/*/src/**/*.ts', { cwd: ROOT, exclude: ['**/*.test.ts'] })) {
    for (const [, version] of read(file).matchAll(/\bversion: '(\d+\.\d+\.\d+)'/g)) {
      expect(version, file).toBe(shared.version);
    }
  }
});

function readManifest(folder: string): Manifest {
  return JSON.parse(read(join(folder, 'package.json'))) as Manifest;
}

test('the release workflow rehearses, publishes with provenance, and keeps the SBOM', () => {
  const workflow = read('.github/workflows/release.yml');
  const steps = [
    'id-token: write',
    '- run: npm run release -- --dry-run',
    '.cdx.json',
    "NPM_CONFIG_PROVENANCE: 'true'",
  ];
  const found = steps.map((step) => workflow.indexOf(step));
  expect(found.every((at) => at >= 0)).toBe(true);
  expect(found).toEqual(found.toSorted((a, b) => a - b));
});
