import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';

/**
 * Suspends a process that uses a store, but never inside a transaction on a SQLite file: the file would stay locked
 * until the process resumes.
 */
export async function stopBetweenWrites(location: string, child: ChildProcess): Promise<void> {
  if (location.startsWith('{')) return stop(child);
  // Only the holder of the file's lock is inside a transaction.
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite');
  using database = new DatabaseSync(location, { timeout: 60_000 });
  database.exec('BEGIN IMMEDIATE');
  await stop(child);
}

async function stop(child: ChildProcess): Promise<void> {
  child.kill('SIGSTOP');
  while (!isStopped(child.pid!)) await new Promise((resolve) => setTimeout(resolve, 1));
}

function isStopped(pid: number): boolean {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The name before it may contain anything, even a parenthesis.
  return stat.slice(stat.lastIndexOf(')') + 2).startsWith('T');
}
