import { expect, test } from 'vitest';
import { findUnknownNames, readApiReports } from '../scripts/doc-names.ts';

const reports = readApiReports();
const find = (text: string): string[] => findUnknownNames('a.md', text, reports);

test('a name that no package exports is found, and an option that no longer exists', () => {
  expect(find('Use `createNothing()`, or `run.cancel(reason?, { how?, undo? })`.')).toEqual([
    'a.md: `createNothing` is in no API report',
    'a.md: `how` is in no API report',
  ]);
});

test('a name that another package exports is found', () => {
  expect(find('Create one `createApprovals()` from `@whoa/tasks`.')).toEqual([
    'a.md: `createApprovals` is not exported by `@whoa/tasks`',
  ]);
  expect(find('Create one `createApprovals()` from `@whoa/core/approval`.')).toEqual([]);
});

test('names that exist, names that the page declares, texts and names of other libraries are accepted', () => {
  const page = [
    '```ts',
    'function mySender() {}',
    '```',
    "`mySender` and `createAgent({ name: 'noName' })`, `streamText`",
  ];
  expect(find(page.join('\n'))).toEqual([]);
});
