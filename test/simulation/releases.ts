import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Change, plant } from '../plant.ts';
import { nextFormat } from '../upgrade/next-release.ts';

const CACHE = join(import.meta.dirname, '../../.cache');
const NOTIFIER = 'stores/sqlite/notifier.ts';

/** The operating system reports changes to a file at any time; here listeners are notified immediately. */
class Bell {
  readonly #listeners = new Map<string, Set<() => void>>();

  watch(path: string, listener: () => void): { close(): void; on(): void } {
    const listeners = this.#listeners.get(path) ?? new Set();
    this.#listeners.set(path, listeners.add(listener));
    return { close: () => void listeners.delete(listener), on: () => {} };
  }

  ring(path: string): void {
    for (const listener of this.#listeners.get(path) ?? []) queueMicrotask(listener);
  }
}

const IN_PROCESS: readonly Change[] = [
  {
    file: NOTIFIER,
    find: 'watch(this.#path, { persistent: false }, onRing)',
    replace: 'globalThis.bell.watch(this.#path, onRing)',
  },
  {
    file: NOTIFIER,
    find: "writeSync(this.#file, isTooLong ? '\\n' : note, 0);",
    replace: "writeSync(this.#file, isTooLong ? '\\n' : note, 0);\n    globalThis.bell.ring(this.#path);",
  },
];

/** Folders with the sources of two releases of the tasks package: this one, and the next, with a newer format. */
export interface ReleaseFolders extends Disposable {
  readonly before: string;
  readonly after: string;
}

export async function copyReleases(folder: string): Promise<ReleaseFolders> {
  Reflect.set(globalThis, 'bell', new Bell());
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
