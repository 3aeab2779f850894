import { lstatSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findHostCgroup } from './containment/cgroup.ts';
import { identify, isRunning, type ProcessIdentity } from './identity/identity.ts';
import { type HostTag, readTags, tagKey } from './identity/tags.ts';

/** What a host records about itself, so that another process can clean up after it. */
export interface HostRecord {
  readonly host: ProcessIdentity;
  /** Pids and start times are not valid after a reboot. */
  readonly bootId: string;
  /** Nor in another PID namespace: containers often share a temporary folder. */
  readonly pidNamespace: string;
  readonly tag: HostTag;
  /** Where its commands run if the technique is `cgroup`. */
  readonly cgroup?: string | undefined;
}

const PREFIX = 'whoa-host-';
const RECORD = 'host.json';

/** Creates the private folder of a host, with its record. */
export function createHostDirectory(tag: HostTag): { folder: string; record: HostRecord } {
  const host = identify(process.pid);
  if (host === undefined) throw new Error('Cannot read /proc/self: mount /proc, or use a containment of another kind');
  // mkdtemp creates it with mode 0700, so other users cannot read it.
  const folder = mkdtempSync(join(tmpdir(), `${PREFIX}${process.pid}-`));
  const record: HostRecord = {
    host,
    bootId: readBootId(),
    pidNamespace: readPidNamespace(),
    tag,
    cgroup: findHostCgroup(tag),
  };
  writeFileSync(join(folder, RECORD), JSON.stringify(record), { mode: 0o600 });
  return { folder, record };
}

export function removeHostDirectory(folder: string): void {
  rmSync(folder, { recursive: true, force: true });
}

/**
 * Finds the directories of this user's hosts that have ended. Their processes may still run, unless the machine was rebooted.
 * Skips directories of other PID namespaces, because we cannot see whether their host runs, and those of hosts that started
 * this process.
 */
export function findAbandonedHostDirectories(): { folder: string; record: HostRecord; mayHaveProcesses: boolean }[] {
  const directories = [];
  const outer = new Set(readTags('self')?.keys);
  for (const name of readdirSync(tmpdir())) {
    if (!name.startsWith(PREFIX)) continue;
    const folder = join(tmpdir(), name);
    const record = readRecord(folder);
    if (record === undefined) continue;
    const mayHaveProcesses = record.bootId === readBootId();
    const isElsewhere = record.pidNamespace !== readPidNamespace() || outer.has(tagKey(record.tag));
    if (mayHaveProcesses && isElsewhere) continue;
    if (!(mayHaveProcesses && isRunning(record.host))) directories.push({ folder, record, mayHaveProcesses });
  }
  return directories;
}

/** Trust it only if no other user can have written it. */
export function readRecord(folder: string): HostRecord | undefined {
  try {
    const stats = lstatSync(folder);
    const isOurs = stats.isDirectory() && stats.uid === process.getuid?.() && (stats.mode & 0o077) === 0;
    if (!isOurs) return undefined;
    return JSON.parse(readFileSync(join(folder, RECORD), 'utf8')) as HostRecord;
  } catch {
    return undefined;
  }
}

function readPidNamespace(): string {
  return readlinkSync('/proc/self/ns/pid');
}

function readBootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
}
