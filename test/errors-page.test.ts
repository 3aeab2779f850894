import { expect, test } from 'vitest';
import { findCodes } from '../scripts/errors/find-codes.ts';
import { updatePage } from '../scripts/errors.ts';

const PAGE = `# Errors

## Tasks and stores

| code | class | when | what to do |
|---|---|---|---|
| \`STORE_BUSY\` | x | It is busy | Wait |
| \`STORE_OLD\` | x | It was old | Wait |

## HTTP responses

| code | status | when | what to do |
|---|---|---|---|
`;
const BUSY = "export class StoreBusyError extends Error { readonly code: string = 'STORE_BUSY'; }";

test('a code keeps its texts, and one that no longer exists loses its row', () => {
  const { page, problems } = updatePage(PAGE, findCodes('packages/tasks/src/errors.ts', BUSY));
  expect(page).toContain('| `STORE_BUSY` | `StoreBusyError` from `@whoa/tasks` | It is busy | Wait |\n');
  expect(page).not.toContain('STORE_OLD');
  expect(problems).toEqual([]);
});

test.each([
  [
    'a class',
    'packages/tasks/src/errors.ts',
    "class NewError extends Error { readonly code = 'BRAND_NEW'; }",
    'BRAND_NEW',
  ],
  ['a response', 'packages/server/src/a.ts', "refuse(418, { code: 'teapot', message: '' });", 'teapot'],
  ['a constant', 'packages/server/src/a.ts', "const KNOWN = { A: { code: 'from-a-table' } };", 'from-a-table'],
])('a new code in %s needs texts', (_where, file, source, code) => {
  const { page, problems } = updatePage(PAGE, findCodes(file, source));
  expect(page).toContain(`| \`${code}\` |`);
  expect(problems).toEqual([`\`${code}\`: say in docs/reference/errors.md when it occurs and what to do`]);
});

test('the status of a response stands next to its code, and only there', () => {
  const source = "throw new HttpError(409, { code: 'late', why: { code: 'inner' } });";
  expect(findCodes('a.ts', source)).toEqual([
    { code: 'late', file: 'a.ts', status: 409 },
    { code: 'inner', file: 'a.ts' },
  ]);
});

test('each code of a class with several is found, and codes of the system are not', () => {
  const source = `class PathError extends Error { readonly code: 'OUTSIDE' | 'MISSING'; }
    class KeyError extends UsageError { constructor() { super('no key', 'NO_KEY'); } }
    Object.assign(new Error(''), { code: 'ENOENT' });`;
  expect(findCodes('a.ts', source).map(({ code }) => code)).toEqual(['OUTSIDE', 'MISSING', 'NO_KEY']);
});

test('a response whose code is computed is rejected', () => {
  expect(() => findCodes('a.ts', 'throw new HttpError(409, { code: answer });')).toThrow('as a literal');
});
