import { execFile } from 'node:child_process';
import { rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { hidesProcesses } from '../identity/table.ts';
import { createControlGroupFence, findControlGroupRoot } from './cgroup-fence.ts';
import type { CleanupReport } from './contained.ts';
import type { Fence } from './fence.ts';
import { bubblewrapArguments, createNamespaceFence, unshareArguments } from './namespace-fence.ts';

/**
 * How the processes of a command are tracked.
 *
 * - `tags` (Linux, the default): inherited tags; needs no privileges.
 * - `namespace`, `bubblewrap`: a PID namespace; the command sees other pids, and `sudo` does not work inside.
 * - `cgroup`: a control group; needs a delegated part of the v2 tree.
 * - `group`, `taskkill`: for other systems; nothing is verified.
 */
export type Technique = 'tags' | 'namespace' | 'bubblewrap' | 'cgroup' | 'group' | 'taskkill';

/** What a technique can do on this machine. */
export interface DetectedTechnique {
  readonly technique: Technique;
  readonly isAvailable: boolean;
  readonly verified: CleanupReport['verified'];
  /** Why it is not available, for users. */
  readonly reason?: string;
}

/**
 * Tries every technique once on this machine.
 *
 * @returns Which ones work, and why others do not.
 */
export async function detectContainments(): Promise<readonly DetectedTechnique[]> {
  const techniques: readonly Technique[] = ['tags', 'namespace', 'bubblewrap', 'cgroup', 'group', 'taskkill'];
  return Promise.all(techniques.map(detect));
}

export function defaultTechnique(): Technique {
  if (process.platform === 'linux') return 'tags';
  return process.platform === 'win32' ? 'taskkill' : 'group';
}

/** Creates the fence of a technique for one command; `undefined` if it has none. */
export function createFence(technique: Technique, cgroup: string): Fence | undefined {
  if (technique === 'namespace') return createNamespaceFence(unshareArguments(), { waitsForInit: true });
  if (technique === 'bubblewrap') return createNamespaceFence(bubblewrapArguments(), { waitsForInit: false });
  return technique === 'cgroup' ? createControlGroupFence(cgroup) : undefined;
}

/** Throws if the technique does not work here. Never fall back to a weaker one silently. */
export async function requireTechnique(technique: Technique): Promise<void> {
  const { isAvailable, reason } = await detect(technique);
  if (isAvailable) return;
  throw new Error(`The containment '${technique}' does not work here: ${reason}. Install it, or choose another`);
}

const VERIFIED: Record<Technique, CleanupReport['verified']> = {
  tags: 'tags',
  namespace: 'kernel',
  bubblewrap: 'kernel',
  cgroup: 'tags',
  group: 'no',
  taskkill: 'no',
};
const MAX_PROBE_MS = 5_000;

async function detect(technique: Technique): Promise<DetectedTechnique> {
  const isBlind = VERIFIED[technique] === 'tags' && process.platform === 'linux' && hidesProcesses();
  const found = { technique, verified: isBlind ? ('no' as const) : VERIFIED[technique] };
  try {
    await probe(technique);
    return { ...found, isAvailable: true };
  } catch (error) {
    return { ...found, isAvailable: false, reason: describe(error) };
  }
}

/** Try it: seccomp or AppArmor may block a program that is installed. */
async function probe(technique: Technique): Promise<void> {
  const platform = process.platform === 'linux' || process.platform === 'win32' ? process.platform : 'posix';
  const needs = technique === 'taskkill' ? 'win32' : technique === 'group' ? 'posix' : 'linux';
  if (needs !== platform && !(needs === 'posix' && platform === 'linux')) throw new Error(`${needs} only`);
  if (technique === 'cgroup') return probeControlGroup();
  if (technique !== 'namespace' && technique !== 'bubblewrap') return;
  const [file = '', ...args] = technique === 'namespace' ? unshareArguments() : bubblewrapArguments();
  await promisify(execFile)(file, [...args, 'true'], { timeout: MAX_PROBE_MS, killSignal: 'SIGKILL' });
}

async function probeControlGroup(): Promise<void> {
  const folder = join(findControlGroupRoot(), `whoa-probe-${process.pid}`);
  const fence = createControlGroupFence(folder);
  try {
    const [file = '', ...args] = fence.wrap(['true']);
    await promisify(execFile)(file, args, { timeout: MAX_PROBE_MS, killSignal: 'SIGKILL' });
    if (!fence.kill()) throw new Error('cgroup.kill cannot be written; it needs Linux 5.14');
  } finally {
    rmdirSync(folder);
  }
}

function describe(error: unknown): string {
  const { code, stderr, message } = error as NodeJS.ErrnoException & { stderr?: string };
  if (code === 'ENOENT') return 'it is not installed';
  return (stderr?.trim() || message).replaceAll('\n', '; ');
}
