import type { ChildProcess, StdioOptions } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import type { ProcessIdentity } from '../identity/identity.ts';
import type { Output } from '../output/output.ts';

/** A program, its arguments and its folder. Only tags are added from the host's environment. */
export interface ProcessCommand {
  readonly argv: readonly [string, ...string[]];
  readonly cwd?: string | undefined;
  readonly env: Readonly<Record<string, string>>;
  /** As for `spawn`. Defaults to `ignore`. */
  readonly stdio?: StdioOptions | undefined;
  /**
   * Instead of `stdio`: called with the output, standard output and error in the order written. The chunk is only valid
   * during the call, and the command waits for it.
   */
  readonly onOutput?: ((chunk: Uint8Array) => void) | undefined;
}

/** How the first process of a command ended. */
export interface ProcessExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/**
 * What is known after the end. `kernel`: the kernel guarantees that no process is left. `tags`: no tagged process is left; only
 * a process that removes all its tags on purpose can escape this. `no`: processes were ended, but it was not verified.
 */
export interface CleanupReport {
  readonly verified: 'kernel' | 'tags' | 'no';
  /** How many processes were ended. */
  readonly ended: number;
  /** How many could not be ended. `survivorPids` lists them. */
  readonly survivors: number;
  readonly survivorPids: readonly number[];
}

export interface EndOptions {
  /** `ask` (default): TERM and CONT, then `graceMs`, then KILL. `kill`: KILL immediately. */
  readonly method?: 'ask' | 'kill';
  readonly graceMs?: number;
}

/** The time between TERM and KILL. */
export const GRACE_MS = 250;

/** A command that runs contained: its whole tree can be ended. Disposing it ends it. */
export interface ContainedProcess extends AsyncDisposable {
  readonly pid: number;
  /** Only the streams that `stdio` connects. */
  readonly stdin: Writable | null;
  readonly stdout: Readable | null;
  readonly stderr: Readable | null;
  /** Only with `onOutput`. */
  readonly output: Output | undefined;
  /** Resolves when the first process has ended; others may still run. Never rejects. */
  readonly exited: Promise<ProcessExit>;
  /**
   * Ends every process of the command and verifies it, including processes that outlive the first one. Calling it again
   * returns the same result; `kill` then ends the grace period early.
   */
  end(options?: EndOptions): Promise<CleanupReport>;
}

/** The error message of a disposed containment. */
export const OVER = 'This containment was disposed; create another for more commands';

/** The grace period in milliseconds. */
export function graceOf({ method = 'ask', graceMs = GRACE_MS }: EndOptions): number {
  if (!(graceMs >= 0)) throw new RangeError(`graceMs: expected 0 or more, got ${graceMs}`);
  return method === 'kill' ? 0 : graceMs;
}

export function reportOf(
  verified: CleanupReport['verified'],
  ended: number,
  survivors: readonly ProcessIdentity[],
): CleanupReport {
  return { verified, ended, survivors: survivors.length, survivorPids: survivors.map(({ pid }) => pid) };
}

/** Resolves when the child has started; rejects with the reason if it could not. */
export function waitForSpawn(child: ChildProcess, { argv, cwd }: ProcessCommand): Promise<void> {
  if (child.pid !== undefined) return Promise.resolve();
  return new Promise((_, reject) => {
    child.once('error', (error: NodeJS.ErrnoException) => {
      const where = cwd === undefined ? '' : ` in ${cwd}`;
      const advice = error.code === 'ENOENT' ? '; does the folder exist, is the program in PATH?' : '';
      reject(new Error(`Could not start '${argv[0]}'${where}: ${error.message}${advice}`, { cause: error }));
    });
  });
}

export function waitForExit(child: ChildProcess): Promise<ProcessExit> {
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }));
    child.once('error', () => resolve({ code: null, signal: null }));
  });
}
