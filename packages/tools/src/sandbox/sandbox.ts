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
import { bridgeArguments, bridgeMounts, PROXY_ENVIRONMENT } from './bridge.ts';
import { readSandboxOptions, type SandboxKind, type SandboxOptions } from './options.ts';
import { isUnder, limitScript, type Profile, resolveWorkspace, sandboxArguments } from './profile.ts';
import { type AllowListProxy, startProxy } from './proxy.ts';

const PROGRAMS = ['/usr/bin/bwrap', '/bin/bwrap', '/usr/local/bin/bwrap', '/run/current-system/sw/bin/bwrap'];

/** A command to run in the sandbox. */
interface SandboxedCommand {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string | undefined;
  readonly stdio: StdioOptions;
  /** The private folder of the host. */
  readonly folder: string;
}

/** The program to start instead. Dispose it once it has started. */
interface Entrance extends Disposable {
  readonly argv: readonly string[];
  readonly stdio: StdioOptions;
}

/** Runs commands in a sandbox, each with its own bubblewrap process. */
export interface Sandbox extends AsyncDisposable {
  readonly kind: Exclude<SandboxKind, 'none'>;
  readonly workspace: string;
  /** A script for the shell that starts the command. */
  readonly script: string;
  /** Starts the proxy, once. */
  open(folder: string): Promise<void>;
  enter(command: SandboxedCommand): Entrance;
}

/** Creates the sandbox; `undefined` for `none`. */
export function createSandbox(asked: SandboxKind | SandboxOptions): Sandbox | undefined {
  const { kind, workspace: folder, readable, network, limits } = readSandboxOptions(asked);
  if (kind === 'none') return undefined;
  if (process.platform !== 'linux') {
    throw new Error(
      `The sandbox '${kind}' does not work here: it needs Linux and bubblewrap. Use 'none' to run without a sandbox`,
    );
  }
  const workspace = resolveWorkspace(folder);
  let proxy: Promise<AllowListProxy> | undefined;
  let mounts: readonly string[] = [];

  return {
    kind,
    workspace,
    script: limitScript(limits),
    async open(host) {
      if (network === undefined) return;
      proxy ??= startProxy(join(host, 'proxy.sock'), network);
      mounts = bridgeMounts((await proxy).socket);
    },
    enter({ argv, env, cwd: wanted = workspace, stdio, folder: host }) {
      const cwd = existsSync(wanted) ? realpathSync(wanted) : wanted;
      if (!isUnder(workspace, cwd)) throw new Error(`cwd: ${cwd} is outside the sandbox's workspace ${workspace}`);
      const profile: Profile = { kind, workspace, readable, limits, mounts };
      const isOnline = network !== undefined;
      const args = sandboxArguments(profile, { env: isOnline ? { ...env, ...PROXY_ENVIRONMENT } : env, cwd });
      const inside = isOnline ? bridgeArguments(argv) : argv;
      const descriptor = openArguments(args, host);
      const plugs = plugInherited(descriptor);
      return {
        argv: [findBubblewrap(), '--args', '3', '--', ...inside],
        stdio: [...firstThree(stdio), descriptor, ...plugs.stdio],
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

/** Finds bubblewrap in fixed folders, never through PATH. */
function findBubblewrap(): string {
  const file = PROGRAMS.find((program) => existsSync(program));
  if (file === undefined) throw Object.assign(new Error('bubblewrap is not installed'), { code: 'ENOENT' });
  return file;
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

function firstThree(stdio: StdioOptions): (number | 'ignore' | 'pipe' | 'inherit')[] {
  const three = typeof stdio === 'string' ? [stdio, stdio, stdio] : stdio.slice(0, 3);
  return three as (number | 'ignore' | 'pipe' | 'inherit')[];
}

const CLOSED_ON_EXEC = 0o2000000;

/** Children inherit descriptors that were open when this process started. Replace them inside the sandbox. */
function plugInherited(used: number): { stdio: (number | 'ignore')[] } & Disposable {
  const leaks = readdirSync('/proc/self/fd')
    .map(Number)
    .filter((descriptor) => descriptor > 3 && descriptor !== used && isInherited(descriptor));
  if (leaks.length === 0) return { stdio: [], [Symbol.dispose]() {} };
  const nothing = openSync('/dev/null', 'r');
  const stdio = Array.from({ length: Math.max(...leaks) - 3 }, (_, index) =>
    leaks.includes(index + 4) ? nothing : ('ignore' as const),
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
