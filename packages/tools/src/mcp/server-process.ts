import type { Readable, Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Containment } from '../process/containment/containment.ts';
import { createShellEnvironment } from '../shell/environment.ts';

export interface ServerCommand {
  readonly command: string;
  readonly args?: readonly string[];
  /** Added to the few harmless variables that a server inherits. It gets no others. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** How a server's process ended: `exit code 3`, `SIGKILL`. */
type ServerEnd = string;

/** A server's process and everything it started. */
export interface ServerProcess {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Resolves when the process has ended; never rejects. */
  readonly ended: Promise<ServerEnd>;
  /** Ends it with all processes it started. Returns how many could not be ended. */
  end(): Promise<number>;
}

export type StartServer = (command: ServerCommand) => Promise<ServerProcess>;

/** How long a server may take to exit after its input was closed. */
const LEAVE_MS = 250;

/** Starts servers in a containment: a server behind a wrapper is ended too, and all end with the host. */
export function startServersIn(containment: Containment): StartServer {
  return async ({ command, args = [], env = {}, cwd }) => {
    const contained = await containment.start({
      argv: [command, ...args],
      env: createShellEnvironment({ set: env }),
      cwd,
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    const [stdin, stdout, stderr] = [contained.stdin!, contained.stdout!, contained.stderr!];
    // Ignore late writes: `ended` reports the end of the server.
    stdin.on('error', () => undefined);
    const end = async (): Promise<number> => {
      stdin.end();
      await waitAtMost(contained.exited, LEAVE_MS);
      const { survivors } = await contained.end();
      // Don't wait for these to end: an escaped process may keep the other ends open forever.
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
