import { globSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Finds a source that is newer than the build of its package.
 *
 * @returns The first such file, or `undefined` when everything is built.
 */
export function findUnbuilt(root: string): string | undefined {
  for (const manifest of globSync('packages/*/package.json', { cwd: root })) {
    // The page of the console is built by a bundler, and not measured.
    const { private: isPrivate } = JSON.parse(readFileSync(join(root, manifest), 'utf8')) as { private?: boolean };
    if (isPrivate === true) continue;
    const folder = join(manifest, '..');
    const builtAt = changedAt(join(root, folder, 'dist/.tsbuildinfo'));
    const sources = globSync('src/**/*.{ts,tsx}', { cwd: join(root, folder) });
    const newer = sources.filter(isBuilt).find((file) => changedAt(join(root, folder, file)) > builtAt);
    if (newer !== undefined) return join(folder, newer);
  }
  return undefined;
}

function isBuilt(file: string): boolean {
  return !/\.test\.tsx?$/.test(file);
}

function changedAt(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}
