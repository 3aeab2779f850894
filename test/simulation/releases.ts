import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createProcessBus } from '../../packages/tasks/src/bus/process-bus.ts';
import { type Change, plant } from '../plant.ts';
import { nextFormat } from '../upgrade/next-release.ts';

const CACHE = join(import.meta.dirname, '../../.cache');

/** Messages between simulated processes neither take real time nor wait for it: their order must depend on the seed alone. */
const IN_PROCESS: readonly Change[] = [
  {
    file: 'ledger/sqlite.ts',
    find: 'new FileBus(file, pollIntervalMs)',
    replace: 'globalThis.createBus()',
  },
  {
    file: 'bus/outbox.ts',
    find: 'if (!isLast) this.#pulse =',
    replace: 'if (false) this.#pulse =',
  },
];

/** Folders with the sources of two releases of the tasks package: this one, and the next, with a newer format. */
export interface ReleaseFolders extends Disposable {
  readonly before: string;
  readonly after: string;
}

export async function copyReleases(folder: string): Promise<ReleaseFolders> {
  Reflect.set(globalThis, 'createBus', createProcessBus);
  mkdirSync(CACHE, { recursive: true });
  // Inside the project, so that the copies find the other packages.
  const home = mkdtempSync(join(CACHE, 'releases-'));
  const [before, after] = [join(home, 'before'), join(home, 'after')];
  for (const copy of [before, after]) cpSync(folder, copy, { recursive: true });
  writeFileSync(join(home, 'package.json'), '{ "type": "module" }');
  await plant(IN_PROCESS, before);
  await plant([...IN_PROCESS, ...nextFormat], after);
  return { before, after, [Symbol.dispose]: () => rmSync(home, { recursive: true }) };
}
