import { spawn } from 'node:child_process';
import type { CancellationToken } from '@whoa/core';
import { findHelper } from '../../process/programs.ts';

/** Longer records (a minified file on one line) are skipped and counted. */
const MAX_RECORD_BYTES = 1_000_000;
const MAX_COMPLAINT_CHARS = 2_000;

export interface RipgrepOptions {
  readonly args: readonly string[];
  readonly cwd: string;
  /** A descriptor to search instead of a path: it cannot be swapped for another file. */
  readonly stdin?: number;
  /** The record separator. */
  readonly separator: '\n' | '\0';
  /** Called for every record. Return `stop` to end the search. */
  readonly onRecord: (record: string) => 'stop' | undefined;
  readonly token: CancellationToken;
}

export interface RipgrepEnd {
  /** `stopped`: by a cancel, or because `onRecord` returned `stop`. */
  readonly end: 'done' | 'stopped';
  /** The number of records that were too long. */
  readonly skippedRecords: number;
  /** Files that could not be read, and why. The list is bounded. */
  readonly unread: readonly string[];
}

/** Runs ripgrep. When this resolves, the process has ended. */
export async function runRipgrep(options: RipgrepOptions): Promise<RipgrepEnd> {
  const { token, cwd } = options;
  const file = await findRipgrep();
  const [program = '', ...args] = [...untilHostEnds(), file, '--no-config', ...options.args];
  if (token.isCancelled) return { end: 'stopped', skippedRecords: 0, unread: [] };
  const child = spawn(program, args, {
    cwd,
    env: {},
    stdio: [options.stdin ?? 'ignore', 'pipe', 'pipe'],
    windowsHide: true,
  });
  const closed = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  const run = { stopped: false, stderrTail: '' };
  const stop = (): void => {
    run.stopped = true;
    // It has nothing to clean up, so kill it without TERM.
    child.kill('SIGKILL');
  };
  const records = new Records(options.separator);
  child.stdout!.on('data', (chunk: Buffer) => {
    for (const record of records.add(chunk)) if (!run.stopped && options.onRecord(record) === 'stop') stop();
  });
  child.stderr!.on('data', (chunk: Buffer) => {
    run.stderrTail = (run.stderrTail + chunk.toString()).slice(0, MAX_COMPLAINT_CHARS);
  });
  const cancel = token.onCancel(stop);
  try {
    const code = await closed;
    const { unread, failure } = sortComplaints(run.stderrTail);
    if (!run.stopped && code === 2 && failure !== '') throw new Error(`The search failed: ${failure}`);
    return { end: run.stopped ? 'stopped' : 'done', skippedRecords: records.skippedRecords, unread };
  } finally {
    cancel[Symbol.dispose]();
  }
}

/** Makes the kernel end ripgrep with its host. That is enough, because it starts no other processes. */
function untilHostEnds(): readonly string[] {
  const setpriv = process.platform === 'linux' ? findHelper('setpriv') : undefined;
  return setpriv === undefined ? [] : [setpriv, '--pdeathsig', 'KILL'];
}

/** Separates files that could not be read from errors that made the search fail, such as an invalid pattern. */
function sortComplaints(stderrTail: string): { unread: string[]; failure: string } {
  const lines = stderrTail.trim().split('\n');
  const unread: string[] = [];
  const others: string[] = [];
  for (const line of lines) {
    const [, complaint] = /^(?:rg: )?(?:\.\/)?(.*: .*) \(os error \d+\)$/.exec(line) ?? [];
    if (complaint === undefined) others.push(line);
    else unread.push(complaint);
  }
  const isCut = stderrTail.length === MAX_COMPLAINT_CHARS;
  const failure = unread.length > 0 && isCut ? '' : others.join('\n');
  return { unread, failure: failure === '' && unread.length === 0 ? 'ripgrep gave no reason' : failure };
}

/** Splits a stream of bytes into records. An incomplete record at the end is dropped. */
class Records {
  readonly #separator: number;
  #rest: Buffer[] = [];
  #size = 0;
  skippedRecords = 0;

  constructor(separator: '\n' | '\0') {
    this.#separator = separator.charCodeAt(0);
  }

  *add(chunk: Buffer): Generator<string> {
    let start = 0;
    for (let end = chunk.indexOf(this.#separator); end !== -1; end = chunk.indexOf(this.#separator, start)) {
      this.#keep(chunk.subarray(start, end));
      start = end + 1;
      const record = this.#take();
      if (record !== undefined) yield record;
    }
    this.#keep(chunk.subarray(start));
  }

  #keep(part: Buffer): void {
    this.#size += part.length;
    if (this.#size <= MAX_RECORD_BYTES) this.#rest.push(part);
    else this.#rest = [];
  }

  #take(): string | undefined {
    const record = this.#size <= MAX_RECORD_BYTES ? Buffer.concat(this.#rest).toString() : undefined;
    this.#rest = [];
    this.#size = 0;
    if (record === undefined) this.skippedRecords++;
    return record;
  }
}

/**
 * Finds the machine's ripgrep, otherwise the one that came with this package. Never through PATH: the searched folder must
 * not supply the program.
 *
 * @returns The path of the program.
 * @throws Error when there is none. The message says what to install.
 */
export async function findRipgrep(): Promise<string> {
  try {
    return findHelper('rg') ?? (await import('@vscode/ripgrep')).rgPath;
  } catch (error) {
    throw new Error('ripgrep is missing; install it (https://github.com/BurntSushi/ripgrep) or add @vscode/ripgrep', {
      cause: error,
    });
  }
}
