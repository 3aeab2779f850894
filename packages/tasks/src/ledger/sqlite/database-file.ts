import { chmodSync, closeSync, mkdirSync, openSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';

/**
 * Returns the default file of the task database: in the user's state folder.
 *
 * @returns The path of the file.
 */
export function getDefaultPath(env: NodeJS.ProcessEnv = process.env): string {
  return join(stateFolder(env), 'whoa', 'tasks.db');
}

function stateFolder(env: NodeJS.ProcessEnv): string {
  const given = env['XDG_STATE_HOME'];
  // Ignore a relative path, as its specification says: it would depend on the current folder, which may be untrusted.
  if (given && isAbsolute(given)) return given;
  if (process.platform === 'win32') return env['LOCALAPPDATA'] ?? join(homedir(), 'AppData', 'Local');
  if (process.platform === 'darwin') return join(homedir(), 'Library', 'Application Support');
  return join(homedir(), '.local', 'state');
}

/** Creates the file, readable by its owner only. SQLite gives the files next to it the same mode. */
export function prepareFile(path: string): void {
  const folder = dirname(path);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (process.platform !== 'win32' && (statSync(folder).mode & 0o002) !== 0) {
    throw new Error(
      `file: all users can write to ${folder}, so any of them could replace the tasks; use a private folder`,
    );
  }
  closeSync(openSync(path, 'a', 0o600));
  chmodSync(path, 0o600);
}
