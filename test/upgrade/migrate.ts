import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '../tasks/child.ts';
import type { Release } from './next-release.ts';

interface Migrated {
  readonly code: number | null;
  readonly said: string;
}

/** Runs `whoa migrate` of a release on a store. */
export async function migrate({ folder }: Release, location: string, args: readonly string[] = []): Promise<Migrated> {
  using home = temporaryFolder();
  const config = join(home.path, 'whoa.config.mjs');
  const store = location.startsWith('{') ? location : JSON.stringify({ backend: 'sqlite', file: location });
  writeFileSync(config, `export default { store: ${store} };`);
  const bin = join(folder, 'packages/whoa/src/bin.ts');
  const flags = ['--conditions=@whoa/source', '--no-warnings', bin, 'migrate', '--config', config, ...args];
  return await new Promise((resolve) => {
    const child = execFile(process.execPath, flags, (_error, stdout, stderr) =>
      resolve({ code: child.exitCode, said: stdout + stderr }),
    );
  });
}
