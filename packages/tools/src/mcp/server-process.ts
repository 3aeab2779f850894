import type { Readable, Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Containment } from '../process/containment/containment.ts';
import { createShellEnvironment } from '../shell/environment.ts';

export interface ServerCommand {
  readonly command: string;
  readonly args?: readonly string[];
  /** Added to the few harmless variables that a server inherits; nothing else reaches it. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** How a server's process ended, in words: `exit code 3`, `SIGKILL`. */
type ServerEnd = string;

/** A server's process and everything it started. */
export interface ServerProcess {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Resolves when the process has ended; never rejects. */
  readonly ended: Promise<ServerEnd>;
  /** Ends it with everything it started; answers how many processes could not be ended. */
  end(): Promise<number>;
}

export type StartServer = (command: ServerCommand) => Promise<ServerProcess>;

/** How long a server may take to leave on its own after its input closed. */
const LEAVE_MS = 250;

/** Starts servers contained: a wrapper cannot hide the server from its end, and the death of the host ends it too. */
export function startServersIn(containment: Containment): StartServer {
  return async ({ command, args = [], env = {}, cwd }) => {
    const contained = await containment.start({
      argv: [command, ...args],
      env: createShellEnvironment({ set: env }),
      cwd,
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    const [stdin, stdout, stderr] = [contained.stdin!, contained.stdout!, contained.stderr!];
    // A server that has gone is known by its end; a write that comes too late is no news.
    stdin.on('error', () => undefined);
    const end = async (): Promise<number> => {
      stdin.end();
      await waitAtMost(contained.exited, LEAVE_MS);
      const { survivors } = await contained.end();
      // Not by waiting for their end: somebody who escaped may hold the other ends for ever.
      for (const stream of [stdin, stdout, stderr]) stream.destroy();
      return survivors;
    };
    const ended = contained.exited.then(({ code, signal }) => signal ?? `exit code ${code}`);
    let ending: Promise<number> | undefined;
    return { stdin, stdout, stderr, ended, end: () => (ending ??= end()) };
  };
}

async function waitAtMost(work: Promise<unknown>, ms: number): Promise<void> {
  const stop = new AbortController();
  const late = sleep(ms, undefined, { signal: stop.signal }).catch(() => undefined);
  await Promise.race([work, late]);
  stop.abort();
}
