import { type PlantedBug, plantOn } from './planted-bug.ts';

const one = plantOn('upgrade');

/** What could be wrong when two releases share a store. */
export const plantedInUpgrade: readonly PlantedBug[] = [
  one(
    'a format is written while older workers have tasks',
    'stores/sqlite/migrator.ts',
    'if (holding.length > 0) return holding;',
    '',
  ),
  one(
    'a worker does not say which format it can use',
    'operations/take.ts',
    'worker, format: FORMAT,',
    'worker, format: FORMAT + 1,',
  ),
  one(
    'a process writes without a look at the format',
    'stores/sqlite/database.ts',
    'this.#checkFormat();\n      const value = work();',
    'const value = work();',
  ),
  one(
    'a process reads without a look at the format',
    'stores/sqlite/database.ts',
    'this.#checkFormat();\n      return value;',
    'return value;',
  ),
  one(
    'a newer release writes its format when it opens the store',
    'stores/sqlite/database.ts',
    'if ([0, FORMAT].includes(this.format)) {',
    'if (this.format <= FORMAT) {',
  ),
  one(
    'a part of a step counts as the whole',
    'stores/sqlite/migrator.ts',
    'const isDone = position === undefined;',
    'const isDone = position === undefined || rows > 0;',
  ),
  one(
    'what the older release wrote last is not brought to the new format',
    'stores/sqlite/migrator.ts',
    'for (const { name } of after) database.run(BEGIN_STEP, [name]);',
    '',
  ),
];
