import { readdirSync, readFileSync } from 'node:fs';

/**
 * The children of a process that still run, each with its command line. The kernel takes the memory of a process first when
 * it ends, and with it the command line. When the parent learns of the end does not matter here: it may never do so.
 */
export function findRunningChildren(parent: number): readonly string[] {
  const children = readOrNothing(`/proc/${parent}/task/${parent}/children`).split(' ').filter(Boolean);
  return children.flatMap((pid) => {
    // The first thread may have ended before the others.
    const [line] = listThreads(pid)
      .map((thread) => readOrNothing(`/proc/${pid}/task/${thread}/cmdline`).trim())
      .filter(Boolean);
    return line === undefined ? [] : [`${pid} ${line}`];
  });
}

function listThreads(pid: string): readonly string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
}

/** The text of a file, or an empty text if it is gone. */
export function readOrNothing(path: string): string {
  try {
    return readFileSync(path, 'latin1').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}
