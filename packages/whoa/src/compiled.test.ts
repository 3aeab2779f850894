import { expect, test } from 'vitest';
import { compiledFolder } from './compiled.ts';

test('compiled code is kept in a folder of the person, never in a relative one', () => {
  expect(compiledFolder({ XDG_CACHE_HOME: '/home/ann/.cached' })).toBe('/home/ann/.cached/whoa/compiled');
  expect(compiledFolder({ XDG_CACHE_HOME: '.' })).toMatch(/^\/.*\.cache\/whoa\/compiled$/);
  expect(compiledFolder({})).toMatch(/^\/.*\.cache\/whoa\/compiled$/);
});
