import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { Adapter, AgentProcess, Connection, Features, Protocol } from '../adapter.ts';
import type { CheckHarness } from '../harness/check-harness.ts';
import { type AgentCommand, type StartedProcess, startProcess } from './agent-process.ts';

/** Where a server is, and how to start it if the kit should. */
export interface AgentServerOptions {
  /** `{port}` is replaced by the port that the command gets. */
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Starts the server. Without it, the server must be running. */
  readonly command?: AgentCommand;
  /** A second instance on the same store. Defaults to `url` when there is a `secondCommand`. */
  readonly secondUrl?: string;
  readonly secondCommand?: AgentCommand;
}

/** How long a server may take until it accepts connections. */
const START_MS = 60_000;
const POLL_MS = 20;
/** Below the ports that systems give to outgoing connections, which could take one before the server does. */
const LOWEST_PORT = 15_000;
const HIGHEST_PORT = 32_000;
const NOT_STARTED = 'the kit did not start the server';
const MAX_TRIES = 50;

/** A server that the kit reaches by its address, and starts when it has a command. */
class AgentServer implements AsyncDisposable {
  readonly #template: string;
  readonly #command: AgentCommand | undefined;
  #started: StartedProcess | undefined;
  #isEnding = false;
  #port: number | undefined;
  #harness: CheckHarness | undefined;

  constructor(template: string, command: AgentCommand | undefined) {
    this.#template = template;
    this.#command = command;
  }

  /** The process of the server, if the kit started it. */
  get process(): AgentProcess | undefined {
    const started = this.#started;
    if (started === undefined) return undefined;
    const kill = (signal: 'SIGTERM' | 'SIGKILL'): void => {
      this.#isEnding = true;
      started.kill(signal);
    };
    return { ...started, kill };
  }

  /** Makes sure that the server runs, and returns its address. */
  async reach(harness: CheckHarness): Promise<string> {
    this.#harness = harness;
    if (this.#command === undefined) return this.#template;
    this.#port ??= await findFreePort();
    if (this.#isEnding) await this[Symbol.asyncDispose]();
    if (this.#started?.hasExited() ?? true) await this.#start(this.#command, this.#port);
    return this.fill(this.#template);
  }

  /** Puts the port of this server into another address of it. */
  fill(url: string): string {
    return url.replaceAll('{port}', String(this.#port ?? ''));
  }

  /** Kills the server without a warning and starts it again on the same port. */
  async restart(): Promise<void> {
    if (this.#harness === undefined) throw new Error('The server was not started yet');
    this.#started?.kill('SIGKILL');
    await this.#started?.exited;
    await this.reach(this.#harness);
  }

  /** Ends the server, if the kit started it. It can be reached again later. */
  async [Symbol.asyncDispose](): Promise<void> {
    const started = this.#started;
    this.#started = undefined;
    this.#isEnding = false;
    started?.kill('SIGTERM');
    await started?.[Symbol.asyncDispose]();
  }

  async #start(command: AgentCommand, port: number): Promise<void> {
    const process = startProcess(command, this.#harness!, port);
    this.#started = process;
    process.child.stdout.resume();
    const until = performance.now() + START_MS;
    while (!(await accepts(port))) {
      const stderrTail = process.stderrTail().trim();
      if (process.hasExited()) throw new Error(`the server ended before it accepted connections\n${stderrTail}`.trim());
      if (performance.now() > until)
        throw new Error(`the server did not listen on port ${port} within ${START_MS / 1_000} s\n${stderrTail}`.trim());
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }
}

/** A protocol whose agents are servers. */
export interface ServerProtocol {
  readonly protocol: Protocol;
  readonly features: Features;
  /** Connects to a server that runs at `url`. */
  readonly connect: (url: string, server: AgentServer) => Promise<Connection>;
}

/** Creates the adapter of a protocol whose agents are servers. */
export function createServerAdapter(
  { protocol, features, connect }: ServerProtocol,
  { url, command, secondUrl, secondCommand }: AgentServerOptions,
): Adapter {
  const first = new AgentServer(url, command);
  const hasSecond = secondUrl !== undefined || secondCommand !== undefined;
  const second = hasSecond ? new AgentServer(secondUrl ?? url, secondCommand) : undefined;
  const reach = async (server: AgentServer, harness: CheckHarness): Promise<Connection> => {
    const connection = await connect(await server.reach(harness), server);
    return Object.assign(connection, server.process && { process: server.process });
  };
  return {
    protocol,
    features: {
      ...features,
      'second-instance': hasSecond || 'no second instance was given',
      process: command !== undefined || NOT_STARTED,
      restart: command !== undefined || NOT_STARTED,
      stdio: 'the server does not read standard input',
    },
    connect: (harness) => reach(first, harness),
    // It runs only while it is needed: it would take over what the first one leaves when that one is killed.
    ...(second && { connectSecond: async (harness: CheckHarness) => withServer(await reach(second, harness), second) }),
    ...(command && { restart: () => first.restart() }),
    async [Symbol.asyncDispose]() {
      await Promise.all([first[Symbol.asyncDispose](), second?.[Symbol.asyncDispose]()]);
    },
  };
}

/** A connection with which its server ends. */
function withServer(connection: Connection, server: AgentServer): Connection {
  const close = connection[Symbol.asyncDispose].bind(connection);
  return Object.assign(connection, {
    async [Symbol.asyncDispose]() {
      await close();
      await server[Symbol.asyncDispose]();
    },
  });
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

async function findFreePort(): Promise<number> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const port = randomInt(LOWEST_PORT, HIGHEST_PORT);
    if (await isFree(port)) return port;
  }
  throw new Error(`no free port found between ${LOWEST_PORT} and ${HIGHEST_PORT}`);
}

async function isFree(port: number): Promise<boolean> {
  const probe = createServer().listen(port, '127.0.0.1');
  try {
    await once(probe, 'listening');
  } catch {
    return false;
  }
  probe.close();
  await once(probe, 'close');
  return true;
}
