import type { ChildProcess, StdioOptions } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import type { ProcessIdentity } from '../identity/identity.ts';
import { type ProcessMoment, type ProcessSpan, readMoment } from '../identity/moment.ts';
import type { Output } from '../output/output.ts';

/** A program, its arguments and its folder. Only tags are added from the host's environment. */
export interface ProcessCommand {
  readonly argv: readonly [string, ...string[]];
  readonly cwd?: string | undefined;
  readonly env: Readonly<Record<string, string>>;
  /** For git itself in a sandbox: mounts with which it may write to `.git`, as arguments of bubblewrap. */
  readonly gitMounts?: readonly string[] | undefined;
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
 * What is known after the end. `namespace`: the kernel ended every process. `cgroup`: the kernel ended every process that did not
 * write itself into another cgroup on purpose. `tags`: no tagged process is left; a process that removes all its tags on purpose
 * escapes this. `no`: processes were ended, but it was not verified.
 */
export interface CleanupReport {
  readonly verified: 'namespace' | 'cgroup' | 'tags' | 'no';
  /** How many processes were ended. */
  readonly ended: number;
  /** How many could not be ended. `survivorPids` lists them. */
  readonly survivors: number;
  readonly survivorPids: readonly number[];
  /** Only from `endSince`: how many running processes may belong to work in `except` and were left alone, if any. */
  readonly shared?: number;
}

export interface EndOptions {
  /** `ask` (default): TERM and CONT, 250 ms of grace, then KILL. `kill`: KILL immediately. */
  readonly method?: 'ask' | 'kill' | undefined;
}

interface EndSinceOptions {
  /** When other work of the command ran: a process that was started then is left alone, unless its parent is ended. */
  readonly except?: readonly ProcessSpan[] | undefined;
  /** Called when the known processes are dead; the proof may follow later. */
  readonly onDead?: (() => void) | undefined;
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
  /** The moment now, for `endSince`. */
  now(): ProcessMoment;
  /**
   * Ends the processes that the command started after a moment, and verifies it; the others continue. On systems where processes
   * cannot be told apart it ends none, and reports `no`.
   */
  endSince(moment: ProcessMoment, options?: EndSinceOptions): Promise<CleanupReport>;
}

/** The error message of a disposed containment. */
export const OVER = 'This containment was disposed; create another for more commands';

export function toReport(
  verified: CleanupReport['verified'],
  ended: number,
  survivors: readonly ProcessIdentity[],
): CleanupReport {
  return { verified, ended, survivors: survivors.length, survivorPids: survivors.map(({ pid }) => pid) };
}

export interface HandleOptions extends Pick<ContainedProcess, 'output' | 'exited'> {
  /** Called once. */
  readonly end: (method: 'ask' | 'kill') => Promise<CleanupReport>;
  /** Ends the grace period now. */
  readonly shortenGrace: () => void;
  readonly endSince?: ContainedProcess['endSince'];
}

/** Creates the handle of a command that was started. */
export function createHandle(child: ChildProcess, options: HandleOptions): ContainedProcess {
  const { output, exited, end, shortenGrace, endSince } = options;
  const { stdin, stdout, stderr } = child;
  let ending: Promise<CleanupReport> | undefined;
  const endOnce = ({ method = 'ask' }: EndOptions = {}): Promise<CleanupReport> => {
    if (method === 'kill') shortenGrace();
    return (ending ??= end(method));
  };
  const dispose = async (): Promise<void> => void (await endOnce());
  return {
    pid: child.pid!,
    stdin,
    stdout,
    stderr,
    output,
    exited,
    end: endOnce,
    now: endSince === undefined ? () => ({ pid: 0, startTime: 0 }) : readMoment,
    endSince: endSince ?? (() => Promise.resolve(toReport('no', 0, []))),
    [Symbol.asyncDispose]: dispose,
  };
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

/** Standard input, output and error. */
export function firstThree(stdio: StdioOptions): (number | 'ignore' | 'pipe' | 'inherit')[] {
  const three = typeof stdio === 'string' ? [stdio, stdio, stdio] : stdio.slice(0, 3);
  return three as (number | 'ignore' | 'pipe' | 'inherit')[];
}
