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
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Starts the server. Without it, the server must be running. */
  readonly command?: AgentCommand | undefined;
  /** A second instance on the same store. Defaults to `url` when there is a `secondCommand`. */
  readonly secondUrl?: string | undefined;
  readonly secondCommand?: AgentCommand | undefined;
}

/** How long a server may take until it accepts connections. */
const START_MS = 60_000;
const POLL_MS = 20;
/** Below the ports that systems give to outgoing connections, which could take one before the server does. */
const LOWEST_PORT = 15_000;
const HIGHEST_PORT = 32_000;
const MAX_TRIES = 50;

/** A server that the kit reaches by its address, and starts when it has a command. */
class AgentServer implements AsyncDisposable {
  readonly #template: string;
  readonly #command: AgentCommand | undefined;
  #started: StartedProcess | undefined;
  #port: number | undefined;

  constructor(template: string, command: AgentCommand | undefined) {
    this.#template = template;
    this.#command = command;
  }

  /** The process of the server, if the kit started it. */
  get process(): AgentProcess | undefined {
    return this.#started;
  }

  /** Makes sure that the server runs, and returns its address. */
  async reach(harness: CheckHarness): Promise<string> {
    if (this.#command === undefined) return this.#template;
    // A check may have killed it, and it may not have exited yet.
    if (this.#started?.child.killed || this.#started?.hasExited()) await this[Symbol.asyncDispose]();
    if (this.#started === undefined) await this.#start(this.#command, harness);
    return this.fill(this.#template);
  }

  /** Puts the port of this server into another address of it. */
  fill(url: string): string {
    return url.replaceAll('{port}', String(this.#port ?? ''));
  }

  /** Kills the server without a warning and starts it again on the same port. What it had started is not ended. */
  async restart(harness: CheckHarness): Promise<void> {
    this.#started?.kill('SIGKILL');
    await this.#started?.exited;
    await this.#start(this.#command!, harness);
  }

  /** Ends the server, if the kit started it. It can be reached again later. */
  async [Symbol.asyncDispose](): Promise<void> {
    const started = this.#started;
    this.#started = undefined;
    started?.kill('SIGTERM');
    await started?.[Symbol.asyncDispose]();
  }

  async #start(command: AgentCommand, harness: CheckHarness): Promise<void> {
    const port = (this.#port ??= await findFreePort());
    const process = startProcess(command, harness, port);
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
  const isOurs = command !== undefined || 'the kit did not start the server';
  const hasSecond = secondUrl !== undefined || secondCommand !== undefined;
  const second = new AgentServer(secondUrl ?? url, secondCommand);
  const reach = async (server: AgentServer, harness: CheckHarness): Promise<Connection> => {
    const connection = await connect(await server.reach(harness), server);
    return Object.assign(connection, server.process && { process: server.process });
  };
  // It runs only while it is needed: it would take over what the first one leaves when that one is killed.
  const connectSecond = async (harness: CheckHarness): Promise<Connection> => {
    const connection = await reach(second, harness);
    const close = connection[Symbol.asyncDispose].bind(connection);
    return Object.assign(connection, {
      async [Symbol.asyncDispose]() {
        await close();
        await second[Symbol.asyncDispose]();
      },
    });
  };
  return {
    protocol,
    features: {
      ...features,
      'second-instance': hasSecond || 'no second instance was given',
      process: isOurs,
      restart: isOurs,
      stdio: 'the server does not read standard input',
    },
    connect: (harness) => reach(first, harness),
    ...(hasSecond && { connectSecond }),
    ...(command && { restart: (harness: CheckHarness) => first.restart(harness) }),
    async [Symbol.asyncDispose]() {
      await Promise.all([first[Symbol.asyncDispose](), second[Symbol.asyncDispose]()]);
    },
  };
}

async function accepts(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  const isOpen = await once(socket, 'connect').then(
    () => true,
    () => false,
  );
  socket.destroy();
  return isOpen;
}

async function findFreePort(): Promise<number> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const port = randomInt(LOWEST_PORT, HIGHEST_PORT);
    const server = createServer().listen(port, '127.0.0.1');
    try {
      await once(server, 'listening');
    } catch {
      continue;
    }
    server.close();
    await once(server, 'close');
    return port;
  }
  throw new Error(`no free port found between ${LOWEST_PORT} and ${HIGHEST_PORT}`);
}
