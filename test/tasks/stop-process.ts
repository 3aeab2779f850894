import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';

/**
 * Stops a process that uses a store, never inside a transaction on a SQLite file: it would keep the whole file locked
 * until it goes on.
 */
export async function stopBetweenWrites(location: string, child: ChildProcess): Promise<void> {
  if (location.startsWith('{')) return stop(child);
  // Whoever holds the file is the only one inside a transaction.
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
  // The name before it may hold anything, also a parenthesis.
  return stat.slice(stat.lastIndexOf(')') + 2).startsWith('T');
}
