import { utimesSync } from 'node:fs';
import { expect, test } from 'vitest';
import { findUnbuilt } from '../scripts/stale-build.ts';
import { createWorkspace } from './workspace.ts';

test('a source that is newer than the build of its package is found, and tests are ignored', () => {
  using root = createWorkspace({
    'packages/core/package.json': '{}',
    'packages/core/src/stop/token.ts': '',
    'packages/core/src/stop/token.test.ts': '',
    'packages/page/package.json': '{ "private": true }',
    'packages/page/src/main.tsx': '',
  });
  const touch = (file: string, seconds: number): void => utimesSync(root.at(file), seconds, seconds);
  touch('packages/core/src/stop/token.ts', 100);
  touch('packages/core/src/stop/token.test.ts', 300);
  // It was never built.
  expect(findUnbuilt(root.path)).toBe('packages/core/src/stop/token.ts');
  root.write('packages/core/dist/.tsbuildinfo', '');
  touch('packages/core/dist/.tsbuildinfo', 200);
  expect(findUnbuilt(root.path)).toBeUndefined();
  touch('packages/core/src/stop/token.ts', 201);
  expect(findUnbuilt(root.path)).toBe('packages/core/src/stop/token.ts');
});

test('a rule that is newer than the built module that holds it is found', () => {
  using root = createWorkspace({
    'packages/tasks/package.json': '{}',
    'packages/tasks/src/ledger/postgres/sql/take.sql': '',
    'packages/tasks/dist/.tsbuildinfo': '',
    'packages/tasks/dist/ledger/postgres/sql/rule-files.js': '',
  });
  const touch = (file: string, seconds: number): void => utimesSync(root.at(file), seconds, seconds);
  touch('packages/tasks/dist/.tsbuildinfo', 100);
  touch('packages/tasks/src/ledger/postgres/sql/take.sql', 200);
  touch('packages/tasks/dist/ledger/postgres/sql/rule-files.js', 199);
  expect(findUnbuilt(root.path)).toBe('packages/tasks/src/ledger/postgres/sql/take.sql');
  touch('packages/tasks/dist/ledger/postgres/sql/rule-files.js', 201);
  expect(findUnbuilt(root.path)).toBeUndefined();
});
