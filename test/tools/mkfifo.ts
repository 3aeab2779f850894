import { execFileSync } from 'node:child_process';

/** Makes a named pipe: opening one waits for the other end, which is how careless readers hang. */
export function mkfifoSync(path: string): void {
  execFileSync('mkfifo', [path]);
}
