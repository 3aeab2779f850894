import { globSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { toBuiltModule } from './inline-rules.ts';

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
    const rule = globSync('src/**/*.sql', { cwd: join(root, folder) }).find((file) =>
      isNewRule(root, join(folder, file)),
    );
    if (rule !== undefined) return join(folder, rule);
  }
  return undefined;
}

/** A rule is in the module next to it, which every build writes. */
function isNewRule(root: string, file: string): boolean {
  const built = toBuiltModule(join(dirname(file), 'rule-files.ts'));
  return changedAt(join(root, file)) > changedAt(join(root, built));
}

function isBuilt(file: string): boolean {
  return !/\.test\.tsx?$/.test(file);
}

function changedAt(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}
