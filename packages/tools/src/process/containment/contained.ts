import type { ChildProcess, StdioOptions } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import type { ProcessIdentity } from '../identity/identity.ts';
import type { Output } from '../output/output.ts';

/** A program and its arguments, and where it runs. Nothing of the host's environment is added but its tags. */
export interface ProcessCommand {
  readonly argv: readonly [string, ...string[]];
  readonly cwd?: string | undefined;
  readonly env: Readonly<Record<string, string>>;
  /** As for `spawn`; nothing is connected unless said otherwise. */
  readonly stdio?: StdioOptions | undefined;
  /**
   * Instead of `stdio`: given what is printed, standard output and error in the order written. The chunk is only good until
   * it returns. While it works the command waits.
   */
  readonly onOutput?: ((chunk: Uint8Array) => void) | undefined;
}

/** How the first process of a command ended. */
export interface ProcessExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/**
 * What is known after the end. `kernel`: the kernel says that nothing of the command is left. `tags`: nothing that bears a tag
 * is left, which only a process that sheds every tag on purpose escapes. `no`: it was tried, but is not proved.
 */
export interface CleanupReport {
  readonly verified: 'kernel' | 'tags' | 'no';
  /** How many processes were ended. */
  readonly ended: number;
  /** How many could not be ended; `survivorPids` says which. */
  readonly survivors: number;
  readonly survivorPids: readonly number[];
}

export interface EndOptions {
  /** `ask` (default): TERM and CONT, then `graceMs`, then KILL. `kill`: KILL at once. */
  readonly method?: 'ask' | 'kill';
  readonly graceMs?: number;
}

/** How long asked processes have before they are killed. */
export const GRACE_MS = 250;

/** A command that runs contained: its whole tree can be ended. Disposing it ends it. */
export interface ContainedProcess extends AsyncDisposable {
  readonly pid: number;
  /** Only those that were asked for with `stdio`. */
  readonly stdin: Writable | null;
  readonly stdout: Readable | null;
  readonly stderr: Readable | null;
  /** There with `onOutput`. */
  readonly output: Output | undefined;
  /** Settles when the first process has ended; the others may still run. It never rejects. */
  readonly exited: Promise<ProcessExit>;
  /**
   * Ends every process of the command and proves it. After the first process has ended this ends what it left behind. Called
   * again it answers the same, and `kill` cuts a grace short.
   */
  end(options?: EndOptions): Promise<CleanupReport>;
}

/** Said to whoever asks a disposed containment for more. */
export const OVER = 'This containment was disposed; create another for more commands';

/** The milliseconds an end leaves for a friendly one. */
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

/** Waits until the child is there, or says why it could not be started. */
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
