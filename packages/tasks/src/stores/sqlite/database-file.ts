import { chmodSync, closeSync, constants, fchmodSync, fstatSync, mkdirSync, openSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';

/**
 * Finds where tasks are kept when no file is named: in the state folder of the user.
 *
 * @returns The path of the file.
 */
export function getDefaultPath(env: NodeJS.ProcessEnv = process.env): string {
  return join(stateFolder(env), 'whoa', 'tasks.db');
}

function stateFolder(env: NodeJS.ProcessEnv): string {
  const given = env['XDG_STATE_HOME'];
  // A relative one is ignored, as its specification says: it would be another folder everywhere, an untrusted one perhaps.
  if (given && isAbsolute(given)) return given;
  if (process.platform === 'win32') return env['LOCALAPPDATA'] ?? join(homedir(), 'AppData', 'Local');
  if (process.platform === 'darwin') return join(homedir(), 'Library', 'Application Support');
  return join(homedir(), '.local', 'state');
}

/** Makes the file, readable by its owner alone. SQLite gives the files beside it the same mode. */
export function prepareFile(path: string): void {
  const folder = dirname(path);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (process.platform !== 'win32' && (statSync(folder).mode & 0o002) !== 0) {
    throw new Error(
      `file: anybody can write to ${folder}, so anybody could replace the tasks; use a folder of your own`,
    );
  }
  closeSync(openSync(path, 'a', 0o600));
  chmodSync(path, 0o600);
}

/**
 * Opens the bell beside a database. Orders that stand on it are obeyed, so only who can write the database may be able to
 * write it: somebody may have made the file before us.
 */
export function openNotifierFile(path: string, database: string): number {
  // Windows has no such flag.
  const noFollow = (constants as Partial<typeof constants>).O_NOFOLLOW ?? 0;
  const notifier = openSync(path, constants.O_RDWR | constants.O_CREAT | noFollow, 0o600);
  if (fstatSync(notifier).uid !== statSync(database).uid) {
    closeSync(notifier);
    throw new Error(`file: ${path} belongs to somebody else, who could forge cancels with it; remove it`);
  }
  fchmodSync(notifier, 0o600);
  return notifier;
}
