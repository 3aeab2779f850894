import { closeSync } from 'node:fs';
import { join } from 'node:path';
import { settings } from '@whoa/core/internal';
import { hidesProcesses } from '../identity/table.ts';
import { createHostTag } from '../identity/tags.ts';
import { requireHelper, tryProgram } from '../programs.ts';
import { Cgroup, enterArguments, findHostCgroup } from './cgroup.ts';
import type { CleanupReport } from './contained.ts';
import { findNamespacePrograms, type NamespaceProgram, namespaceArguments } from './namespace.ts';

/**
 * How the processes of a command are kept together and ended.
 *
 * - `cgroup` (Linux, the default where this process may write to its cgroup): the kernel ends all processes in a cgroup v2 folder.
 * - `namespace` (Linux, for `isolate` and sandboxes): a PID namespace. The command sees other pids, and `sudo` may not work.
 * - `tags` (Linux, otherwise the default): inherited tags, found in `/proc`.
 * - `group`, `taskkill`: for other systems; nothing is verified.
 */
export type Technique = 'cgroup' | 'namespace' | 'tags' | 'group' | 'taskkill';
export type LinuxTechnique = Exclude<Technique, 'group' | 'taskkill'>;

/** What a technique can do on this machine. */
export interface DetectedTechnique {
  readonly technique: Technique;
  readonly isAvailable: boolean;
  readonly verified: CleanupReport['verified'];
  /** Why it is not available, for users. */
  readonly reason?: string;
}

const TECHNIQUES: readonly Technique[] = ['cgroup', 'namespace', 'tags', 'group', 'taskkill'];

/** The techniques of this system. */
function ownTechniques(): readonly Technique[] {
  if (process.platform === 'linux') return TECHNIQUES.slice(0, -1);
  return [process.platform === 'win32' ? 'taskkill' : 'group'];
}

/**
 * Tries every technique of this system once.
 *
 * @returns Which ones work, and why others do not.
 */
export async function detectContainments(): Promise<readonly DetectedTechnique[]> {
  return Promise.all(ownTechniques().map((technique) => detect(technique)));
}

/** Checks the technique that was asked for. */
export function readTechnique(asked: Technique | undefined): Technique | undefined {
  if (asked !== undefined) return settings.oneOf(...TECHNIQUES)(asked, 'technique') as Technique;
  return process.platform === 'linux' ? undefined : ownTechniques()[0];
}

/** Throws if the technique does not work here. Never fall back to a weaker one silently. */
export async function requireTechnique(technique: Technique, cgroup?: string): Promise<void> {
  const { isAvailable, reason } = await detect(technique, cgroup);
  if (isAvailable) return;
  throw new Error(`The containment '${technique}' does not work here: ${reason}. Install it, or choose another`);
}

/** The technique that was asked for, or the best one that changes nothing for commands. `cgroup` is the host's. */
export async function chooseTechnique(asked: LinuxTechnique | undefined, cgroup?: string): Promise<LinuxTechnique> {
  if (asked === undefined) return (await detect('cgroup', cgroup)).isAvailable ? 'cgroup' : 'tags';
  await requireTechnique(asked, cgroup);
  return asked;
}

/** Returns the first program that can create a PID namespace here. */
export async function findNamespaceProgram(): Promise<NamespaceProgram> {
  let failure: unknown = Object.assign(new Error(), { code: 'ENOENT' });
  for (const program of findNamespacePrograms()) {
    try {
      await tryProgram(namespaceArguments(program, [requireHelper('true')]));
      return program;
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}

async function detect(technique: Technique, cgroup?: string): Promise<DetectedTechnique> {
  const isBlind = technique === 'tags' && process.platform === 'linux' && hidesProcesses();
  const proof = technique === 'group' || technique === 'taskkill' || isBlind ? 'no' : technique;
  try {
    await probe(technique, cgroup);
    return { technique, verified: proof, isAvailable: true };
  } catch (error) {
    return { technique, verified: proof, isAvailable: false, reason: describe(error) };
  }
}

/** Try it: seccomp, AppArmor or a read-only mount may block what is there. */
async function probe(technique: Technique, cgroup?: string): Promise<void> {
  if (!ownTechniques().includes(technique)) throw new Error(`it is not for ${process.platform}`);
  if (technique === 'namespace') await findNamespaceProgram();
  if (technique === 'cgroup') await probeCgroup(cgroup ?? findHostCgroup(createHostTag()));
}

async function probeCgroup(path: string | undefined): Promise<void> {
  if (path === undefined) throw new Error('there is no cgroup v2 mount in which this process is');
  const cgroup = new Cgroup(join(path, 'probe'));
  try {
    cgroup.create();
    if (!cgroup.canKill()) throw new Error('Linux 5.14 or later is needed');
    const entrance = cgroup.openEntrance();
    try {
      await tryProgram(enterArguments([requireHelper('true')]), ['ignore', 'ignore', 'pipe', entrance]);
    } finally {
      closeSync(entrance);
    }
  } finally {
    new Cgroup(path).remove();
  }
}

function describe(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT' && message === '') return 'neither unshare nor bubblewrap is installed';
  if (code === 'EROFS' || code === 'EACCES') return 'this process may not write to its cgroup';
  return message;
}
