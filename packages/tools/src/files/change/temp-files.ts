import { randomBytes } from 'node:crypto';
import { lstat, opendir, unlink } from 'node:fs/promises';

const TEMP = /^\.whoa-(\d+)-[0-9a-f]{12}\.tmp$/;

/** A glob for temp files, which searches exclude. */
export const TEMP_GLOB = '.whoa-*.tmp';

/** Creates a name for a temp file. It contains the pid of this process. */
export function createTempName(): string {
  return `.whoa-${process.pid}-${randomBytes(6).toString('hex')}.tmp`;
}

/** The pid of the process that created a temp file; `undefined` if the name is not one of ours. */
export function makerOfTemp(name: string): number | undefined {
  const [, pid] = TEMP.exec(name) ?? [];
  return pid === undefined ? undefined : Number(pid);
}

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
