import { spawn } from 'node:child_process';
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { delimiter, isAbsolute, join } from 'node:path';
import type { CancellationToken } from '@whoa/core';
import { pathInside } from './held-walk.ts';

/** A record longer than this (a minified file on one line) is passed over and counted. */
const RECORD_BYTES_MAX = 1_000_000;
const COMPLAINT_CHARS_MAX = 2_000;

export interface RipgrepOptions {
  readonly args: readonly string[];
  readonly cwd: string;
  /** Searched instead of a path: a descriptor cannot be swapped for another file. */
  readonly stdin?: number;
  /** What ends a record. */
  readonly separator: '\n' | '\0';
  /** Called for every record; answer `stop` when enough is known. */
  readonly onRecord: (record: string) => 'stop' | undefined;
  /** Where a program must not come from: what is searched does not bring its own searcher. */
  readonly notFrom: string;
  readonly token: CancellationToken;
}

export interface RipgrepEnd {
  /** `stopped`: by a cancel or because enough was known. */
  readonly end: 'done' | 'stopped';
  /** Records that were too long to look at. */
  readonly passedOver: number;
}

/** Runs ripgrep to its end. When this returns the process is gone. */
export async function runRipgrep(options: RipgrepOptions): Promise<RipgrepEnd> {
  const { token, cwd } = options;
  const file = await findRipgrep(options.notFrom);
  if (token.isCancelled) return { end: 'stopped', passedOver: 0 };
  const child = spawn(file, ['--no-config', ...options.args], {
    cwd,
    env: {},
    stdio: [options.stdin ?? 'ignore', 'pipe', 'pipe'],
    windowsHide: true,
  });
  const closed = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  const run = { stopped: false, complaints: '' };
  const stop = (): void => {
    run.stopped = true;
    // It holds nothing that needs tidying, so there is nothing to ask for first.
    child.kill('SIGKILL');
  };
  const records = new Records(options.separator);
  child.stdout!.on('data', (chunk: Buffer) => {
    for (const record of records.add(chunk)) if (!run.stopped && options.onRecord(record) === 'stop') stop();
  });
  child.stderr!.on('data', (chunk: Buffer) => {
    run.complaints = (run.complaints + chunk.toString()).slice(0, COMPLAINT_CHARS_MAX);
  });
  const cancel = token.onCancel(stop);
  try {
    const code = await closed;
    if (!run.stopped && code === 2 && records.count === 0) throw new Error(explain(run.complaints));
    return { end: run.stopped ? 'stopped' : 'done', passedOver: records.passedOver };
  } finally {
    cancel[Symbol.dispose]();
  }
}

function explain(complaints: string): string {
  return `The search failed: ${complaints.trim() || 'ripgrep gave no reason'}`;
}

/** Cuts a stream of bytes into records. What is cut off at the end is dropped: it would be half a record. */
class Records {
  readonly #separator: number;
  #rest: Buffer[] = [];
  #size = 0;
  count = 0;
  passedOver = 0;

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
    if (this.#size <= RECORD_BYTES_MAX) this.#rest.push(part);
    else this.#rest = [];
  }

  #take(): string | undefined {
    const record = this.#size <= RECORD_BYTES_MAX ? Buffer.concat(this.#rest).toString() : undefined;
    this.#rest = [];
    this.#size = 0;
    if (record === undefined) this.passedOver++;
    else this.count++;
    return record;
  }
}

/** The machine's ripgrep, else the one that came with this package. */
export async function findRipgrep(notFrom: string): Promise<string> {
  const name = process.platform === 'win32' ? 'rg.exe' : 'rg';
  for (const folder of (process.env['PATH'] ?? '').split(delimiter)) {
    if (!isAbsolute(folder) || pathInside(notFrom, folder) !== undefined) continue;
    const file = join(folder, name);
    if (await canRun(file)) return file;
  }
  try {
    const { rgPath } = await import('@vscode/ripgrep');
    return rgPath;
  } catch (error) {
    throw new Error('ripgrep is missing; install it (https://github.com/BurntSushi/ripgrep) or add @vscode/ripgrep', {
      cause: error,
    });
  }
}

async function canRun(file: string): Promise<boolean> {
  return access(file, constants.X_OK).then(
    () => true,
    () => false,
  );
}
