import { lstat, readdir, unlink } from 'node:fs/promises';

const TEMP = /^\.whoa-(\d+)-[0-9a-f]{12}\.tmp$/;

/** Younger ones may belong to a live process that this one cannot see, in another container. */
const AGE_MS_MIN = 600_000;

/** Folders larger than this are not searched: tidying must not cost more than the write. */
const ENTRIES_MAX = 10_000;

/** Removes the temp files that a process which was killed in the middle of a write left in a folder. */
export async function sweepTemps(folder: string): Promise<void> {
  const names = await readdir(folder);
  if (names.length > ENTRIES_MAX) return;
  for (const name of names) {
    const pid = Number(TEMP.exec(name)?.[1]);
    if (Number.isNaN(pid) || isAlive(pid)) continue;
    const path = `${folder}/${name}`;
    const stats = await lstat(path).catch(() => undefined);
    if (stats?.isFile() && Date.now() - stats.mtimeMs > AGE_MS_MIN) await unlink(path).catch(() => undefined);
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as { code?: string }).code === 'EPERM';
  }
}
