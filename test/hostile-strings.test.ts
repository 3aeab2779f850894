import { expect, test } from 'vitest';
import { hostileFamilies, hostileStrings } from './hostile-strings.ts';

test('there are at least 500 hostile strings, each once, of every family', () => {
  expect(hostileStrings.length).toBeGreaterThanOrEqual(500);
  expect(new Set(hostileStrings).size).toBe(hostileStrings.length);
  for (const [name, family] of Object.entries(hostileFamilies)) expect(family.length, name).toBeGreaterThanOrEqual(5);
});
