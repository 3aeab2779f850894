import { execFile } from 'node:child_process';
import { closeSync, constants, openSync, rmSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { requireHelper } from './programs.ts';

/** A pipe for a child's output: `read` for us, `write` for the child. The caller closes both. */
export interface Pipe {
  readonly read: number;
  readonly write: number;
}

/** How many are created at a time: one `mkfifo` process can create sixteen for the same cost. */
const BATCH = 16;

/**
 * Creates real pipes. Node's pipes are sockets, on which `> /dev/stderr` fails. Node cannot create pipes, so these are named
 * pipes that are unlinked as soon as both ends are open.
 */
export class Pipes implements AsyncDisposable {
  readonly #folder: string;
  readonly #names: string[] = [];
  #made = 0;
  #making: Promise<void> | undefined;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async open(): Promise<Pipe> {
    let name = this.#names.pop();
    while (name === undefined) {
      await (this.#making ??= this.#make());
      name = this.#names.pop();
    }
    // Open the reading end first and non-blocking: opening a named pipe for writing waits for a reader.
    const read = openSync(name, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      return { read, write: openSync(name, constants.O_WRONLY) };
    } catch (error) {
      closeSync(read);
      throw error;
    } finally {
      unlinkSync(name);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#making?.catch(() => {});
    for (const name of this.#names.splice(0)) rmSync(name, { force: true });
  }

  async #make(): Promise<void> {
    const names = Array.from({ length: BATCH }, () => join(this.#folder, `pipe-${++this.#made}`));
    try {
      await promisify(execFile)(requireHelper('mkfifo'), ['-m', '600', ...names], { env: {} });
      this.#names.push(...names);
    } catch (error) {
      throw new Error(`Could not create pipes in ${this.#folder} with mkfifo; install it (coreutils)`, {
        cause: error,
      });
    } finally {
      this.#making = undefined;
    }
  }
}
