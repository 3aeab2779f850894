import { execFileSync } from 'node:child_process';
import { globSync, statSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');

/** Builds the console's page as published, unless it is newer than its sources. */
export function buildConsole(): void {
  if (isBuilt()) return;
  // Test runners set it to something else, and React would be built for development.
  const env = { ...process.env, NODE_ENV: 'production' };
  const vite = join(ROOT, 'node_modules/.bin/vite');
  execFileSync(vite, ['build', 'packages/console', '--logLevel', 'error'], { cwd: ROOT, env });
}

/** Whether the page was built after its sources, and those of the packages it uses, were changed. */
function isBuilt(): boolean {
  const changedAt = (file: string): number => statSync(join(ROOT, file), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const builtAt = changedAt('packages/server/console/index.html');
  const sources = globSync(['packages/*/src/**/*.{ts,tsx,css}', 'packages/console/*.*'], { cwd: ROOT });
  return sources.every((file) => changedAt(file) <= builtAt);
}
