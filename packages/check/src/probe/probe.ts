import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { extname, join } from 'node:path';
import { within } from '../clock.ts';

/** The processes of a probe: the one that the tool started, its child, and one that left the process group. */
export type Role = 'root' | 'child' | 'detached';

/** How a command can resist its stop. */
const ATTACKS = [
  'freeze-host',
  'kill-host',
  'kill-helpers',
  'new-session',
  'respawn',
  'ignore-term',
  'leave-cgroup',
  'hand-over',
  'settings',
] as const;
export type Attack = (typeof ATTACKS)[number];

export const isAttack = (name: string): name is Attack => ATTACKS.some((attack) => attack === name);

/** `tree` starts all roles; `ignore-signals` ignores the signals that ask it to end; `quick` ends as soon as it has begun. */
export type ProbeMode = 'plain' | 'tree' | 'ignore-signals' | 'quick' | Attack;

/** What a process of a probe says when it starts. */
interface Hello {
  readonly key: string;
  readonly role: Role;
  readonly mode: ProbeMode;
  /** In its own PID namespace. Calls in an MCP server have none. */
  readonly pid?: number;
}

/** What an attack did, unless it was not possible. */
interface AttackDone {
  /** How many probes it started. */
  readonly probes?: number;
  /** The files it wrote in the folder. */
  readonly files?: readonly string[];
}

const EXTENSION = extname(import.meta.filename);
const PROGRAM = join(import.meta.dirname, `program${EXTENSION}`);
const ATTACK_PROGRAM = join(import.meta.dirname, `attack${EXTENSION}`);
const MCP_PROGRAM = join(import.meta.dirname, `mcp-program${EXTENSION}`);

/** Watches from outside what an agent's tools do. */
export class Probe implements AsyncDisposable {
  /** Where probes connect to. */
  readonly port: number;
  readonly #server: Server;
  readonly #folder: string;
  readonly #started: Hello[] = [];
  /** The connections, and what their processes said. */
  readonly #alive = new Map<Socket, Hello | undefined>();
  readonly #finished = new Map<string, string>();
  readonly #dismissed = new Set<string>();
  readonly #changes = new Set<() => void>();
  #controls = 0;

  private constructor(server: Server, folder: string) {
    this.#server = server;
    this.#folder = folder;
    this.port = (server.address() as AddressInfo).port;
    server.on('connection', (socket) => this.#accept(socket));
  }

  /** Starts to listen for probes. The agent works in the folder. */
  static async start(folder: string): Promise<Probe> {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new Probe(server, folder);
  }

  /** The command of an MCP server whose tool is the probe, for agents without a shell. */
  get mcpCommand(): readonly string[] {
    return [process.execPath, MCP_PROGRAM, String(this.port)];
  }

  /** Returns the shell command that starts a probe. */
  command(key: string, mode: ProbeMode): string {
    const words = [process.execPath, ...this.#arguments(key, mode)];
    return words.map((word) => (/^[\w./:-]+$/.test(word) ? word : `"${word}"`)).join(' ');
  }

  /** Resolves when all its processes are there. */
  async waitForStart(key: string, mode: ProbeMode): Promise<void> {
    const roles = mode === 'tree' ? ['root', 'child', 'detached'] : ['root'];
    const isThere = (role: string): boolean => this.#started.some((one) => one.key === key && one.role === role);
    await this.#until(() => roles.every(isThere));
  }

  hasStarted(key: string): boolean {
    return this.countStarts(key) > 0;
  }

  /** How often this probe was started, or any. */
  countStarts(key?: string): number {
    return this.#started.filter((one) => one.role === 'root' && one.key === (key ?? one.key)).length;
  }

  /** Watches for as long as probes take to start on this machine, and returns whether it has started. */
  async startsSoon(key: string): Promise<boolean> {
    await this.waitForOthers(() => this.hasStarted(key));
    return this.hasStarted(key);
  }

  /** Waits for as long as probes take to start on this machine, or until something is true. */
  async waitForOthers(isEnough: () => boolean): Promise<void> {
    // A fixed time is too short on a busy machine. What began before two controls, one at a time, is there by then.
    for (let control = 0; control < 2 && !isEnough(); control++) {
      const args = this.#arguments(`control-${++this.#controls}`, 'quick');
      await once(spawn(process.execPath, args, { stdio: 'ignore' }), 'exit');
    }
  }

  /** Tells a probe to attack. Resolves with what it did when all that it started is there; with nothing if that was impossible. */
  async attack(key: string): Promise<AttackDone | undefined> {
    this.finish(key);
    await this.#until(() => this.hasAttacked(key));
    return this.#attackDone(key);
  }

  hasAttacked(key: string): boolean {
    const started = this.#started.filter((one) => one.key === key).length;
    return this.hasFinished(key) && started > (this.#attackDone(key)?.probes ?? 0);
  }

  /** The pids of its processes. */
  pids(key: string): readonly number[] {
    return [...this.#alive.values()].flatMap((one) => (one?.key === key ? (one.pid ?? []) : []));
  }

  /** Ends its processes, and those of it that start later. */
  dismiss(key: string): void {
    this.#dismissed.add(key);
    for (const [socket, one] of this.#alive) if (one?.key === key) socket.destroy();
  }

  /** Waits at most `ms` until its processes are gone, or only the one named. Returns those that are still there. */
  async waitForEnd(key: string, ms: number, role?: Role): Promise<readonly Role[]> {
    const left = (): readonly Role[] =>
      [...this.#alive.values()].flatMap((one) => (one?.key === key && one.role === (role ?? one.role) ? one.role : []));
    await within(
      ms,
      this.#until(() => left().length === 0),
    );
    return left();
  }

  /** Tells it to do its work and end. Returns whether there was any to tell. */
  finish(key: string): boolean {
    const alive = [...this.#alive].filter(([, one]) => one?.key === key);
    for (const [socket] of alive) socket.write('finish\n');
    return alive.length > 0;
  }

  /** Returns whether it has done its work. */
  hasFinished(key: string): boolean {
    return this.#finished.has(key);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Probes end when they lose the kit.
    for (const socket of this.#alive.keys()) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #attackDone(key: string): AttackDone | undefined {
    return (JSON.parse(this.#finished.get(key) ?? '{}') as { readonly done?: AttackDone }).done;
  }

  #arguments(key: string, mode: ProbeMode): readonly string[] {
    const own = isAttack(mode) ? [`${process.pid}`, this.#folder] : [];
    return [isAttack(mode) ? ATTACK_PROGRAM : PROGRAM, String(this.port), key, 'root', mode, ...own];
  }

  #accept(socket: Socket): void {
    this.#alive.set(socket, undefined);
    socket.on('error', () => {});
    socket.on('data', (data) => {
      const known = this.#alive.get(socket);
      if (known === undefined) {
        const hello = JSON.parse(data.toString()) as Hello;
        this.#started.push(hello);
        this.#alive.set(socket, hello);
        if (hello.mode === 'quick') socket.write('finish\n');
        if (this.#dismissed.has(hello.key)) socket.destroy();
      } else this.#finished.set(known.key, data.toString());
      this.#change();
    });
    socket.once('close', () => {
      this.#alive.delete(socket);
      this.#change();
    });
  }

  #change(): void {
    for (const check of this.#changes) check();
  }

  #until(isTrue: () => boolean): Promise<void> {
    if (isTrue()) return Promise.resolve();
    return new Promise((resolve) => {
      const check = (): void => {
        if (!isTrue()) return;
        this.#changes.delete(check);
        resolve();
      };
      this.#changes.add(check);
    });
  }
}
