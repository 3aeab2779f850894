import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** As long as tasks are kept by default. */
const KEPT_MS = 7 * 24 * 3_600_000;

/**
 * Opens the folder for output that is too long for a screen, and removes old files from it.
 *
 * @returns What the shell tool knows about logs: none are kept where the folder cannot be made.
 */
export function openLogFolder(folder: string): false | { readonly folder: string } {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    for (const name of readdirSync(folder)) removeIfOld(join(folder, name));
    return { folder };
  } catch {
    return false;
  }
}

function removeIfOld(file: string): void {
  const changedAt = statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? Infinity;
  if (Date.now() - changedAt > KEPT_MS) rmSync(file, { force: true });
}
