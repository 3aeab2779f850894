import { randomBytes } from 'node:crypto';

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
