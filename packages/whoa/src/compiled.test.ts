import { chmodSync, chownSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createWorkspace } from '../../../test/workspace.ts';
import { compiledFolder, isOurs } from './compiled.ts';

test('compiled code is kept in a folder of the person, never in a relative one', () => {
  expect(compiledFolder({ XDG_CACHE_HOME: '/home/ann/.cached' })).toBe('/home/ann/.cached/whoa/compiled');
  expect(compiledFolder({ XDG_CACHE_HOME: '.' })).toMatch(/^\/.*\.cache\/whoa\/compiled$/);
  expect(compiledFolder({})).toMatch(/^\/.*\.cache\/whoa\/compiled$/);
});

test('a folder that others can write to, or have made, is not used', () => {
  using workspace = createWorkspace();
  chmodSync(workspace.path, 0o755);
  expect(isOurs(workspace.path)).toBe(true);
  chmodSync(workspace.path, 0o775);
  expect(isOurs(workspace.path)).toBe(false);
  chmodSync(workspace.path, 0o755);
  if (process.getuid?.() !== 0) return;
  chownSync(workspace.path, 12_345, 12_345);
  expect(isOurs(workspace.path)).toBe(false);
});
