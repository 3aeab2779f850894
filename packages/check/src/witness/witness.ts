import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { extname, join } from 'node:path';
import { within } from '../within.ts';

/** The processes of a witness: the one that the tool started, its child, and one that left the process group. */
export type Role = 'root' | 'child' | 'detached';

/** `tree` starts all roles; `deaf` ignores the signals that ask it to end; `quick` ends as soon as it has begun. */
export type WitnessMode = 'plain' | 'tree' | 'deaf' | 'quick';

const ROLES: Readonly<Record<WitnessMode, readonly Role[]>> = {
  plain: ['root'],
  deaf: ['root'],
  quick: ['root'],
  tree: ['root', 'child', 'detached'],
};

const EXTENSION = extname(import.meta.filename);
const PROGRAM = join(import.meta.dirname, `program${EXTENSION}`);
const MCP_PROGRAM = join(import.meta.dirname, `mcp-program${EXTENSION}`);

/** Watches from outside what an agent's tools do. */
export interface Witness extends AsyncDisposable {
  readonly port: number;
  /** Returns the shell command that starts a witness. */
  command(key: string, mode: WitnessMode): string;
  /** The command of an MCP server whose tool is the witness, for agents without a shell. */
  readonly mcpCommand: readonly string[];
  /** Resolves when all its processes are there. */
  waitForStart(key: string, mode: WitnessMode): Promise<void>;
  hasStarted(key: string): boolean;
  /** Waits at most `ms` until its processes are gone, or only the one named. Returns those that are still there. */
  waitForEnd(key: string, ms: number, role?: Role): Promise<readonly Role[]>;
  /** Watches for as long as witnesses take to start on this machine, and returns whether it has started. */
  startsSoon(key: string): Promise<boolean>;
  isAlive(key: string): boolean;
  /** Tells it to do its work and end. Returns whether there was any to tell. */
  finish(key: string): boolean;
  /** Returns whether it has done its work. */
  hasFinished(key: string): boolean;
}

/** Starts to listen for witnesses. `folder` is for the marker file. */
export async function startWitness(folder: string): Promise<Witness> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return new WitnessServer(server, join(folder, 'witness-marker'));
}

class WitnessServer implements Witness {
  readonly port: number;
  readonly #server: Server;
  readonly #marker: string;
  readonly #sockets = new Set<Socket>();
  readonly #alive = new Map<string, Map<Role, Socket>>();
  readonly #started = new Map<string, Set<Role>>();
  readonly #quick = new Set<string>();
  readonly #changes = new Set<() => void>();
  #controls = 0;

  constructor(server: Server, marker: string) {
    this.#server = server;
    this.#marker = marker;
    this.port = (server.address() as AddressInfo).port;
    server.on('connection', (socket) => this.#accept(socket));
  }

  get mcpCommand(): readonly string[] {
    return [process.execPath, MCP_PROGRAM, String(this.port), this.#marker];
  }

  command(key: string, mode: WitnessMode): string {
    if (mode === 'quick') this.#quick.add(key);
    const words = [process.execPath, PROGRAM, String(this.port), key, 'root', mode, this.#marker];
    return words.map((word) => (/^[\w./:-]+$/.test(word) ? word : `"${word}"`)).join(' ');
  }

  async waitForStart(key: string, mode: WitnessMode): Promise<void> {
    await this.#until(() => ROLES[mode].every((role) => this.#started.get(key)?.has(role)));
  }

  hasStarted(key: string): boolean {
    return this.#started.has(key);
  }

  async waitForEnd(key: string, ms: number, role?: Role): Promise<readonly Role[]> {
    const left = (): readonly Role[] => {
      const alive = [...(this.#alive.get(key)?.keys() ?? [])];
      return role === undefined ? alive : alive.filter((one) => one === role);
    };
    const ended = this.#until(() => left().length === 0);
    await within(ms, ended);
    return left();
  }

  async startsSoon(key: string): Promise<boolean> {
    // A fixed time is too short on a busy machine. What began before two controls, one after the other, is there by then.
    for (let control = 0; control < 2 && !this.hasStarted(key); control++) await this.#startControl();
    return this.hasStarted(key);
  }

  async #startControl(): Promise<void> {
    const key = `control-${++this.#controls}`;
    this.#quick.add(key);
    const args = [PROGRAM, String(this.port), key, 'root', 'quick', this.#marker];
    const child = spawn(process.execPath, args, { stdio: 'ignore' });
    await once(child, 'exit');
  }

  isAlive(key: string): boolean {
    return (this.#alive.get(key)?.size ?? 0) > 0;
  }

  finish(key: string): boolean {
    const sockets = [...(this.#alive.get(key)?.values() ?? [])];
    for (const socket of sockets) socket.write('finish\n');
    return sockets.length > 0;
  }

  hasFinished(key: string): boolean {
    return existsSync(this.#marker) && readFileSync(this.#marker, 'utf8').split('\n').includes(key);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Witnesses end when they lose the kit.
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #accept(socket: Socket): void {
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
    socket.on('error', () => {});
    socket.once('data', (data) => {
      const { key, role } = JSON.parse(data.toString()) as { key: string; role: Role };
      const alive = this.#alive.get(key) ?? new Map<Role, Socket>();
      this.#alive.set(key, alive.set(role, socket));
      this.#started.set(key, (this.#started.get(key) ?? new Set()).add(role));
      socket.once('close', () => {
        if (alive.get(role) === socket) alive.delete(role);
        this.#change();
      });
      if (this.#quick.has(key)) this.finish(key);
      this.#change();
    });
  }

  #change(): void {
    for (const look of this.#changes) look();
  }

  #until(isTrue: () => boolean): Promise<void> {
    if (isTrue()) return Promise.resolve();
    return new Promise((resolve) => {
      const look = (): void => {
        if (!isTrue()) return;
        this.#changes.delete(look);
        resolve();
      };
      this.#changes.add(look);
    });
  }
}
