import type { Readable, Writable } from 'node:stream';
import { waitAtMost } from '@whoa/core/internal';
import type { Containment } from '../process/containment/containment.ts';
import { findProgram, pathOutside } from '../process/programs.ts';
import { createShellEnvironment } from '../shell/environment.ts';

export interface ServerCommand {
  readonly command: string;
  readonly args?: readonly string[] | undefined;
  /** Added to the few harmless variables that a server inherits. It gets no others. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly cwd?: string | undefined;
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

/** Finds the program once, and not in the folder it works in: agents can write there. Nor may it start programs from there. */
export function resolveServer<Server extends ServerCommand>(server: Server): Server {
  const { PATH: path } = createShellEnvironment({ set: server.env ?? {} });
  if (path === undefined || process.platform === 'win32') return server;
  const workspace = server.cwd ?? process.cwd();
  const env = { ...server.env, PATH: pathOutside(workspace, path) };
  return { ...server, command: findProgram(server.command, { workspace, path }), env };
}

/** How long a server may take to exit after its input was closed. */
const EXIT_TIMEOUT_MS = 250;

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
      await waitAtMost(contained.exited, EXIT_TIMEOUT_MS);
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
