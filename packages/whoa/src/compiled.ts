import { existsSync, mkdirSync, statSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

/** Enables Node's compile cache for a faster start. Does nothing where the cache cannot be written. */
export function keepCompiled(env: NodeJS.ProcessEnv = process.env): void {
  const folder = compiledFolder(env);
  if (folder === undefined) return;
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    if (isOurs(folder)) enableCompileCache(folder);
  } catch {
    // The cache is optional.
  }
}

/** Returns whether only this user can write to the folder. Another user who can write to it can make us run their code. */
export function isOurs(folder: string): boolean {
  const { mode, uid } = statSync(folder);
  return process.platform === 'win32' || ((mode & 0o022) === 0 && uid === process.getuid?.());
}

/** A folder in the user's home. Node's default is the temporary folder, where other users could place code for us to run. */
export function compiledFolder(env: NodeJS.ProcessEnv): string | undefined {
  const given = env['XDG_CACHE_HOME'];
  if (given && isAbsolute(given)) return join(given, 'whoa', 'compiled');
  if (process.platform === 'win32' && env['LOCALAPPDATA']) return join(env['LOCALAPPDATA'], 'whoa', 'compiled');
  try {
    const home = homedir();
    // The home of a service account may not exist, and we must not create it.
    return isAbsolute(home) && existsSync(home) ? join(home, '.cache', 'whoa', 'compiled') : undefined;
  } catch {
    // `homedir` throws if the system does not know the user.
    return undefined;
  }
}
