import type { Ended } from './ending.ts';
import { findAbandonedHostDirectories, type HostRecord, removeHostDirectory } from './host-directory.ts';
import type { ProcessIdentity } from './identity/identity.ts';
import { Scope } from './identity/scope.ts';
import { tagKey } from './identity/tags.ts';
import { Sweeper } from './sweeper.ts';

const MAX_TRIES = 10;

/** Ends all processes that a dead host left running, and removes its folder. `roots` are its commands, if known. */
export async function cleanUpAfterHost(
  { folder, record }: { folder: string; record: HostRecord },
  roots: readonly ProcessIdentity[] = [],
): Promise<Ended> {
  const sweeper = new Sweeper();
  const scope = new Scope(tagKey(record.tag), { roots, since: record.host.startTime, born: record.born });
  sweeper.add(scope);
  let ended = await sweeper.end(scope, { graceMs: 0 });
  // No caller waits for this, so try for longer.
  for (let tries = 1; ended.verified === 'no' && tries < MAX_TRIES; tries++) {
    const more = await sweeper.end(scope, { graceMs: 0 });
    ended = { ...more, ended: ended.ended + more.ended };
  }
  removeHostDirectory(folder);
  return ended;
}

/**
 * Ends the processes that crashed hosts left running. Hosts that still run are left alone.
 *
 * @returns How many hosts had crashed, and how many processes were ended.
 */
export async function endLeftovers(): Promise<{ readonly hosts: number; readonly ended: number }> {
  const total = { hosts: 0, ended: 0 };
  if (process.platform !== 'linux') return total;
  for (const directory of findAbandonedHostDirectories()) {
    total.hosts++;
    if (directory.mayHaveProcesses) total.ended += (await cleanUpAfterHost(directory)).ended;
    else removeHostDirectory(directory.folder);
  }
  return total;
}
