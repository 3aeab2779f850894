import { randomBytes } from 'node:crypto';

const TEMP = /^\.whoa-(\d+)-[0-9a-f]{12}\.tmp$/;

/** As a glob: what searches leave out. */
export const TEMP_GLOB = '.whoa-*.tmp';

/** A name for the temp file of a write under way. It says which process made it. */
export function createTempName(): string {
  return `.whoa-${process.pid}-${randomBytes(6).toString('hex')}.tmp`;
}

/** The process that made a temp file; `undefined` if the name is not one of ours. */
export function makerOfTemp(name: string): number | undefined {
  const [, pid] = TEMP.exec(name) ?? [];
  return pid === undefined ? undefined : Number(pid);
}
