import { existsSync, mkdirSync, statSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

/** Keeps compiled code, so that the next start is faster. Where it cannot be kept, nothing is said: all works without. */
export function keepCompiled(env: NodeJS.ProcessEnv = process.env): void {
  const folder = compiledFolder(env);
  if (folder === undefined) return;
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    if (isOurs(folder)) enableCompileCache(folder);
  } catch {
    // Everything works without.
  }
}

/** Whoever else can write to it, or made it before us, can give us code to run. */
export function isOurs(folder: string): boolean {
  const { mode, uid } = statSync(folder);
  return process.platform === 'win32' || ((mode & 0o022) === 0 && uid === process.getuid?.());
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
