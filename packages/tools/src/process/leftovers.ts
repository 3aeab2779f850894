import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Ended, MAX_KILL_MS } from './containment/boundary.ts';
import { Cgroup } from './containment/cgroup.ts';
import { findAbandonedHostDirectories, type HostRecord, removeHostDirectory } from './host-directory.ts';
import type { ProcessIdentity } from './identity/identity.ts';
import { Scope } from './identity/scope.ts';
import { tagKey } from './identity/tags.ts';
import { Sweeper } from './sweeper.ts';

const MAX_TRIES = 10;

/** A command of a host, as the host's watchdog knows it. */
export interface GuardedCommand {
  readonly root: ProcessIdentity;
  /** Its number within the host. */
  readonly number: number;
}

/** Ends all processes that a dead host left running, and removes its folder. `commands` are those that are known. */
export async function cleanUpAfterHost(
  { folder, record }: { folder: string; record: HostRecord },
  commands: readonly GuardedCommand[] = [],
): Promise<Ended> {
  const ended = await endAll(record, commands);
  if (record.cgroup !== undefined) new Cgroup(record.cgroup).remove();
  removeHostDirectory(folder);
  return ended;
}

/** Ends all commands of a host. */
export async function endAll(record: HostRecord, commands: readonly GuardedCommand[]): Promise<Ended> {
  const roots = commands.map(({ root }) => root);
  return endOne(record.cgroup, new Scope(tagKey(record.tag), { roots, since: record.host.startTime }));
}

/** Ends one command of a host. */
export async function endCommand({ tag, cgroup }: HostRecord, { root, number }: GuardedCommand): Promise<Ended> {
  const scope = new Scope(tagKey(tag, number), { roots: [root], since: root.startTime });
  return endOne(cgroup && join(cgroup, `${number}`), scope);
}

async function endOne(cgroup: string | undefined, scope: Scope): Promise<Ended> {
  if (cgroup !== undefined && existsSync(cgroup)) return endCgroup(new Cgroup(cgroup));
  const sweeper = new Sweeper();
  sweeper.add(scope);
  let ended = await sweeper.end(scope, { graceMs: 0 });
  // No caller waits for this, so try for longer.
  for (let tries = 1; ended.verified === 'no' && tries < MAX_TRIES; tries++) {
    const more = await sweeper.end(scope, { graceMs: 0 });
    ended = { ...more, ended: ended.ended + more.ended };
  }
  return ended;
}

async function endCgroup(cgroup: Cgroup): Promise<Ended> {
  const running = cgroup.pids().length;
  cgroup.kill();
  const isEmpty = await cgroup.waitUntilEmpty(MAX_KILL_MS * MAX_TRIES);
  return { verified: isEmpty ? 'cgroup' : 'no', ended: running, survivors: [] };
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
