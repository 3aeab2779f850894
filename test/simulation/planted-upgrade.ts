import { type PlantedBug, plantOn } from './planted-bug.ts';

const one = plantOn('upgrade');

/** Bugs in how two releases share a store. */
export const plantedInUpgrade: readonly PlantedBug[] = [
  one(
    'a process writes without checking the format',
    'ledger/sqlite/database.ts',
    'this.#checkFormat();\n      const value = work();',
    'const value = work();',
  ),
  one(
    'a process reads without checking the format',
    'ledger/sqlite/database.ts',
    'this.#checkFormat();\n      return value;',
    'return value;',
  ),
  one(
    'a newer release writes its format when it opens the store',
    'ledger/sqlite/database.ts',
    'if (this.format > 0) return;',
    '',
  ),
  one(
    'a newer release does not add its columns to a store that exists',
    'ledger/sqlite/database.ts',
    'for (const one of this.missing()) {',
    'for (const one of this.format === 0 ? this.missing() : []) {',
  ),
];
