import { existsSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

/** Keeps compiled code, so that the next start is faster. Where it cannot be kept, nothing is said: all works without. */
export function keepCompiled(env: NodeJS.ProcessEnv = process.env): void {
  const folder = compiledFolder(env);
  if (folder !== undefined) enableCompileCache(folder);
}

/** A folder of the person's own. Node would take the one for temporary files, where others could put code for us to run. */
export function compiledFolder(env: NodeJS.ProcessEnv): string | undefined {
  const given = env['XDG_CACHE_HOME'];
  if (given && isAbsolute(given)) return join(given, 'whoa', 'compiled');
  if (process.platform === 'win32' && env['LOCALAPPDATA']) return join(env['LOCALAPPDATA'], 'whoa', 'compiled');
  try {
    const home = homedir();
    // That of a service may not be there, and is not ours to make.
    return isAbsolute(home) && existsSync(home) ? join(home, '.cache', 'whoa', 'compiled') : undefined;
  } catch {
    // A user that the system does not know has no home.
    return undefined;
  }
}
