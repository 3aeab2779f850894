import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { hidesProcesses } from '../identity/table.ts';
import { requireHelper } from '../programs.ts';
import type { CleanupReport } from './contained.ts';
import { fenceArguments } from './kernel-boundary.ts';

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

const VERIFIED: Readonly<Record<Technique, CleanupReport['verified']>> = {
  tags: 'tags',
  bubblewrap: 'kernel',
  group: 'no',
  taskkill: 'no',
};

/** The techniques of this system. The first one is the default and needs no privileges. */
function ownTechniques(): readonly [Technique, ...Technique[]] {
  if (process.platform === 'linux') return ['tags', 'bubblewrap', 'group'];
  return [process.platform === 'win32' ? 'taskkill' : 'group'];
}

/**
 * Tries every technique of this system once.
 *
 * @returns Which ones work, and why others do not.
 */
export async function detectContainments(): Promise<readonly DetectedTechnique[]> {
  return Promise.all(ownTechniques().map(detect));
}

/** The technique that was asked for, or the default. */
export function readTechnique(asked: Technique = ownTechniques()[0]): Technique {
  if (Object.hasOwn(VERIFIED, asked)) return asked;
  const known = Object.keys(VERIFIED).map((one) => `'${one}'`);
  throw new TypeError(`technique: expected ${known.join(', ')}, got ${String(asked)}`);
}

/** Throws if the technique does not work here. Never fall back to a weaker one silently. */
export async function requireTechnique(technique: Technique): Promise<void> {
  const { isAvailable, reason } = await detect(technique);
  if (isAvailable) return;
  throw new Error(`The containment '${technique}' does not work here: ${reason}. Install it, or choose another`);
}

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
  if (!ownTechniques().includes(technique)) throw new Error(`it is not for ${process.platform}`);
  if (technique !== 'bubblewrap') return;
  const [file = '', ...args] = fenceArguments([requireHelper('true')]);
  await promisify(execFile)(file, args, { env: {}, timeout: MAX_PROBE_MS, killSignal: 'SIGKILL' });
}

function describe(error: unknown): string {
  const { code, stderr, message } = error as NodeJS.ErrnoException & { stderr?: string };
  if (code === 'ENOENT') return 'it is not installed';
  return (stderr?.trim() || message).replaceAll('\n', '; ');
}
