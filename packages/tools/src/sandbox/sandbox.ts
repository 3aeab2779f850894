import type { StdioOptions } from 'node:child_process';
import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { firstThree } from '../process/containment/contained.ts';
import { initArguments, REPORT } from '../process/containment/namespace.ts';
import { isUnder, requireHelper } from '../process/programs.ts';
import { bridgeArguments, bridgeMounts, proxyEnvironment } from './bridge.ts';
import { findSockets, type Guards, guardWorkspace, hide, maskSockets } from './guards.ts';
import { readSandboxOptions, type SandboxKind, type SandboxOptions } from './options.ts';
import { limitScript, type Profile, resolveWorkspace, sandboxArguments } from './profile.ts';
import { type AllowListProxy, startProxy } from './proxy.ts';

/** A command to run in the sandbox. */
interface SandboxedCommand {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string | undefined;
  readonly stdio: StdioOptions;
  /** The private folder of the host. */
  readonly folder: string;
  /** Additional mounts for git itself. */
  readonly gitMounts?: readonly string[] | undefined;
}

/** The program to start instead. Dispose it once it has started. */
interface Entrance extends Disposable {
  readonly argv: readonly string[];
  readonly stdio: StdioOptions;
}

/** Runs commands in a sandbox, each with its own bubblewrap process. */
export interface Sandbox extends AsyncDisposable {
  readonly kind: Exclude<SandboxKind, 'none'>;
  readonly hosts: readonly string[];
  readonly workspace: string;
  /** Whether commands run next to a bridge to the proxy. */
  readonly isOnline: boolean;
  /** Finds what must be protected and starts the proxy, once. */
  open(folder: string): Promise<void>;
  enter(command: SandboxedCommand): Entrance;
}

/** Creates the sandbox; `undefined` for `none`. */
export function createSandbox(asked: SandboxKind | SandboxOptions): Sandbox | undefined {
  const { kind, workspace: folder, readable, hidden, network, limits, ...more } = readSandboxOptions(asked);
  if (kind === 'none') return undefined;
  if (process.platform !== 'linux') {
    throw new Error(
      `The sandbox '${kind}' does not work here: it needs Linux and bubblewrap. Use 'none' to run without a sandbox`,
    );
  }
  const workspace = resolveWorkspace(folder);
  const writable = more.writable.map((path) => resolveWorkspace(path, 'writable'));
  let proxy: Promise<AllowListProxy> | undefined;
  let finding: Promise<Guards> | undefined;
  let guards: Guards | undefined;
  let sockets: readonly string[] = [];
  let bridge: readonly string[] = [];

  return {
    kind,
    hosts: network?.allow ?? [],
    workspace,
    isOnline: network !== undefined,
    async open(host) {
      const inside = hidden.map((path) => realpathSync(path)).filter((path) => isUnder(workspace, path));
      if (kind === 'workspace') guards = await (finding ??= guardWorkspace(workspace, inside));
      else guards = { forCommands: inside.flatMap(hide), forGit: [] };
      sockets = await findSockets(workspace, writable);
      if (network === undefined) return;
      proxy ??= startProxy(join(host, 'proxy.sock'), network);
      bridge = bridgeMounts((await proxy).socket);
    },
    enter({ argv, env, cwd: wanted = workspace, stdio, folder: host, gitMounts }) {
      if (guards === undefined) throw new Error('The sandbox is closed; open it again');
      const cwd = existsSync(wanted) ? realpathSync(wanted) : wanted;
      if (!isUnder(workspace, cwd)) throw new Error(`cwd: ${cwd} is outside the sandbox's workspace ${workspace}`);
      const guarded = gitMounts === undefined ? guards.forCommands : [...guards.forGit, ...gitMounts];
      const mounts = [...guarded, ...maskSockets(sockets), ...bridge];
      const profile: Profile = { kind, workspace, readable, writable, limits, mounts };
      const online = network && proxyEnvironment(network.allow);
      const args = sandboxArguments(profile, { env: { ...env, ...online }, cwd });
      const command = initArguments(argv, { script: limitScript(limits), own: online ? 3 : 1 });
      const inside = online ? bridgeArguments(command) : command;
      const descriptor = openArguments(args, host);
      const plugs = plugInherited(descriptor);
      return {
        argv: [requireHelper('bwrap'), '--as-pid-1', '--args', '3', '--', ...inside],
        stdio: [...firstThree(stdio), descriptor, 'pipe', ...plugs.stdio],
        [Symbol.dispose]() {
          closeSync(descriptor);
          plugs[Symbol.dispose]();
        },
      };
    },
    async [Symbol.asyncDispose]() {
      await (await proxy)?.[Symbol.asyncDispose]();
    },
  };
}

let files = 0;

/** Passes the arguments in an unnamed file, so that they do not appear in the process table. */
function openArguments(args: readonly string[], folder: string): number {
  const file = join(folder, `arguments-${++files}`);
  writeFileSync(file, args.map((arg) => `${arg}\0`).join(''), { mode: 0o600, flag: 'wx' });
  try {
    return openSync(file, 'r');
  } finally {
    unlinkSync(file);
  }
}

const CLOSED_ON_EXEC = 0o2000000;

/** Children inherit descriptors that were open when this process started. Replace them inside the sandbox. */
function plugInherited(used: number): { stdio: (number | 'ignore')[] } & Disposable {
  const leaks = readdirSync('/proc/self/fd')
    .map(Number)
    .filter((descriptor) => descriptor > REPORT && descriptor !== used && isInherited(descriptor));
  if (leaks.length === 0) return { stdio: [], [Symbol.dispose]() {} };
  const nothing = openSync('/dev/null', 'r');
  const stdio = Array.from({ length: Math.max(...leaks) - REPORT }, (_, index) =>
    leaks.includes(index + REPORT + 1) ? nothing : ('ignore' as const),
  );
  return { stdio, [Symbol.dispose]: () => closeSync(nothing) };
}

function isInherited(descriptor: number): boolean {
  try {
    const flags = /^flags:\t(\d+)/m.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, 'latin1'))?.[1];
    return flags !== undefined && (Number.parseInt(flags, 8) & CLOSED_ON_EXEC) === 0;
  } catch {
    // Closed meanwhile: the descriptor of the listing itself.
    return false;
  }
}
