import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { hidesProcesses } from '../identity/table.ts';
import { requireHelper } from '../programs.ts';
import type { CleanupReport } from './contained.ts';
import { fenceArguments } from './fence.ts';

/**
 * How the processes of a command are tracked.
 *
 * - `tags` (Linux, the default): inherited tags; needs no privileges.
 * - `bubblewrap`: a PID namespace; the command sees other pids, and `sudo` does not work inside.
 * - `group`, `taskkill`: for other systems; nothing is verified.
 */
export type Technique = 'tags' | 'bubblewrap' | 'group' | 'taskkill';

/** What a technique can do on this machine. */
export interface DetectedTechnique {
  readonly technique: Technique;
  readonly isAvailable: boolean;
  readonly verified: CleanupReport['verified'];
  /** Why it is not available, for users. */
  readonly reason?: string;
}

const TECHNIQUES: readonly Technique[] = ['tags', 'bubblewrap', 'group', 'taskkill'];

/**
 * Tries every technique once on this machine.
 *
 * @returns Which ones work, and why others do not.
 */
export async function detectContainments(): Promise<readonly DetectedTechnique[]> {
  return Promise.all(TECHNIQUES.map(detect));
}

/** The technique that was asked for, or the best one that works without privileges. */
export function readTechnique(asked: Technique | undefined): Technique {
  if (asked === undefined) return defaultTechnique();
  if (TECHNIQUES.includes(asked)) return asked;
  throw new TypeError(`technique: expected ${TECHNIQUES.map((one) => `'${one}'`).join(', ')}, got ${String(asked)}`);
}

function defaultTechnique(): Technique {
  if (process.platform === 'linux') return 'tags';
  return process.platform === 'win32' ? 'taskkill' : 'group';
}

/** Throws if the technique does not work here. Never fall back to a weaker one silently. */
export async function requireTechnique(technique: Technique): Promise<void> {
  const { isAvailable, reason } = await detect(technique);
  if (isAvailable) return;
  throw new Error(`The containment '${technique}' does not work here: ${reason}. Install it, or choose another`);
}

const VERIFIED: Record<Technique, CleanupReport['verified']> = {
  tags: 'tags',
  bubblewrap: 'kernel',
  group: 'no',
  taskkill: 'no',
};
const MAX_PROBE_MS = 5_000;

async function detect(technique: Technique): Promise<DetectedTechnique> {
  const isBlind = technique === 'tags' && process.platform === 'linux' && hidesProcesses();
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
  if (technique !== 'bubblewrap') return;
  const [file = '', ...args] = fenceArguments([requireHelper('true')]);
  await promisify(execFile)(file, args, { env: {}, timeout: MAX_PROBE_MS, killSignal: 'SIGKILL' });
}

function describe(error: unknown): string {
  const { code, stderr, message } = error as NodeJS.ErrnoException & { stderr?: string };
  if (code === 'ENOENT') return 'it is not installed';
  return (stderr?.trim() || message).replaceAll('\n', '; ');
}
