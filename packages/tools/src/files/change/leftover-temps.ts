import { lstat, opendir, unlink } from 'node:fs/promises';
import { makerOfTemp } from './temp-name.ts';

/** Younger files may belong to a live process that we cannot see, in another container. */
const MIN_AGE_MS = 600_000;

/** Bounds the search: the cleanup must not cost more than the write. */
const MAX_ENTRIES = 2_000;

/** Removes the temp files that killed processes left in a folder. */
export async function sweepTemps(folder: string): Promise<void> {
  let entries = 0;
  for await (const { name } of await opendir(folder, { bufferSize: 512 })) {
    if (++entries > MAX_ENTRIES) return;
    const pid = makerOfTemp(name);
    if (pid === undefined || isAlive(pid)) continue;
    const path = `${folder}/${name}`;
    const stats = await lstat(path).catch(() => undefined);
    if (stats?.isFile() && Date.now() - stats.mtimeMs > MIN_AGE_MS) await unlink(path).catch(() => undefined);
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
