// Checks the TypeScript of the docs and of doc comments as a reader's compiler would, and runs the blocks marked `run`:
// they must print the output on the page, except for times.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findUnbuilt } from '../../scripts/stale-build.ts';
import { type Block, findBlocks, findExamples, PAGES, ROOT, SOURCES, splitBlocks } from './pages.ts';

/** Readers use the build. If it is missing or too old, the sources are used instead, which takes longer. */
const CONDITIONS = findUnbuilt(ROOT) === undefined ? [] : ['@whoa/source'];
const programs = PAGES.flatMap(findBlocks).filter(
  ({ language, about }) => language === 'ts' && !about.startsWith('file='),
);
const examples = SOURCES.flatMap(findExamples);
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'whoa-docs-'));
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }');
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(readersConfig()));
  for (const program of [...programs, ...examples])
    writeFileSync(join(folder, describeBlock(program)), `${program.text}\nexport {};\n`);
});

afterAll(() => rmSync(folder, { recursive: true }));

test('the TypeScript of the docs, and of the examples in doc comments, compiles', () => {
  expect(programs.length).toBeGreaterThan(10);
  expect(examples.length).toBeGreaterThan(25);
  const { stdout, status } = spawnSync(
    process.execPath,
    [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', folder],
    {
      cwd: folder,
      encoding: 'utf8',
    },
  );
  expect(stdout).toBe('');
  expect(status).toBe(0);
});

test.each(programs.filter(({ about }) => about === 'run').map((program) => [describeBlock(program), program] as const))(
  '%s runs, and prints the output on the page',
  (name, program) => {
    const cwd = join(folder, `${name}.cwd`);
    mkdirSync(cwd);
    const { stdout, stderr, status } = spawnSync(
      process.execPath,
      ['--no-warnings', ...CONDITIONS.map((condition) => `--conditions=${condition}`), join(folder, name)],
      { cwd, encoding: 'utf8', timeout: 60_000 },
    );
    expect(stderr).toBe('');
    expect(status).toBe(0);
    expect(comparable(stdout)).toBe(comparable(outputShown(program)));
  },
);

test('an output is seen with or without a language, and a program that shows none is found', () => {
  const shown = (text: string): string | undefined => findOutput(splitBlocks('a.md', text), 1)?.text;
  expect(shown('```ts run\nlog(1);\n```\n\n```\n1\n```\n')).toBe('1\n');
  expect(shown('```ts run\nlog(1);\n```\n\n```text\n1\n```\n')).toBe('1\n');
  expect(shown('```ts run\nlog(1);\n```\n\nText.\n\n```sh\necho 1\n```\n')).toBeUndefined();
});

/** A plain strict configuration, as a reader may have it. */
function readersConfig(): object {
  return {
    compilerOptions: {
      strict: true,
      noEmit: true,
      target: 'es2023',
      lib: ['es2024', 'esnext.disposable'],
      module: 'nodenext',
      types: ['node'],
      skipLibCheck: true,
      allowImportingTsExtensions: true,
      customConditions: CONDITIONS,
    },
    include: ['*.ts', join(ROOT, 'test/docs/assumed.d.ts')],
  };
}

function describeBlock({ page, line }: Block): string {
  return `${page.replaceAll('/', '-').replace(/\.(?:md|ts)$/, '')}-${line}.ts`;
}

/** The block of output that follows a program: a reader cannot tell whether a program without one works. */
function outputShown({ page, line }: Block): string {
  const output = findOutput(findBlocks(page), line);
  if (output === undefined)
    throw new Error(`${page}:${line} shows no output: add what the program prints as the next block`);
  return output.text;
}

function findOutput(blocks: readonly Block[], line: number): Block | undefined {
  const next = blocks[blocks.findIndex((block) => block.line === line) + 1];
  return next !== undefined && ['', 'text'].includes(next.language) ? next : undefined;
}

/** The text without times, and without spaces that no reader sees. */
function comparable(text: string): string {
  return text
    .replaceAll(/ *\+?\d[\d.]* ms/g, ' N ms')
    .replaceAll(/ +$/gm, '')
    .trimEnd();
}
