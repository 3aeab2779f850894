import { existsSync, lstatSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { homedir, userInfo } from 'node:os';
import { dirname, isAbsolute } from 'node:path';
import { isUnder } from '../process/programs.ts';
import type { SandboxKind, SandboxLimits, Whole } from './options.ts';

/** The private home folder of commands. */
const SANDBOX_HOME = '/home/agent';
const SHM_BYTES = 2 ** 28;

/** The parts of `/etc` that programs need: no keys, no host names, no service configuration. */
const ETC = [
  'passwd',
  'group',
  'nsswitch.conf',
  'hosts',
  'localtime',
  'ld.so.cache',
  'ld.so.conf',
  'ld.so.conf.d',
  'alternatives',
  'ssl/certs',
  'ssl/openssl.cnf',
  'ca-certificates',
  'pki/tls/certs',
];

export interface Profile {
  readonly kind: Exclude<SandboxKind, 'none'>;
  /** The real path. */
  readonly workspace: string;
  readonly readable: readonly string[];
  /** Real paths. */
  readonly writable: readonly string[];
  readonly limits: Whole<SandboxLimits>;
  /** Additional mounts: what protects parts of the workspace, the socket of the proxy. */
  readonly mounts: readonly string[];
}

/** Bubblewrap's arguments for one command. Keep the order: later mounts cover earlier ones. */
export function sandboxArguments(
  profile: Profile,
  { env, cwd }: { env: Readonly<Record<string, string | undefined>>; cwd: string },
): string[] {
  const { kind, workspace, limits, mounts } = profile;
  const temp = `${limits.tempBytes}`;
  const home = { HOME: SANDBOX_HOME, TMPDIR: '/tmp' };
  const variables = Object.entries({ ...env, ...home }).filter(([, value]) => value !== undefined);
  return [
    ['--unshare-user', '--unshare-pid', '--unshare-net', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try'],
    // Without the first, root keeps every capability; without the second, a nested user namespace gets them back.
    ['--cap-drop', 'ALL', '--disable-userns', '--die-with-parent', '--new-session', '--hostname', 'sandbox'],
    systemMounts(),
    ['--proc', '/proc', '--dev', '/dev', '--size', `${SHM_BYTES}`, '--tmpfs', '/dev/shm'],
    ['--size', temp, '--tmpfs', '/tmp', '--size', temp, '--tmpfs', SANDBOX_HOME, '--dir', '/var/tmp'],
    [...programFolders(env['PATH'] ?? '', workspace), ...profile.readable].flatMap(readOnly),
    profile.writable.flatMap((path) => ['--bind', path, pathInside(path)]),
    [kind === 'workspace' ? '--bind' : '--ro-bind', workspace, workspace],
    mounts,
    // Remount read-only last: Linux lets root write to /proc/sys even without capabilities.
    ['--remount-ro', '/proc', '--remount-ro', '/dev', '--remount-ro', '/', '--clearenv'],
    variables.flatMap(([name, value]) => ['--setenv', name, value!]),
    ['--chdir', cwd],
  ].flat();
}

/** Sets the limits for the command, or fails: never run without the limits. */
export function limitScript({ memoryBytes, processes }: Whole<SandboxLimits>): string {
  const kib = Math.ceil(memoryBytes / 1024);
  // Shells call the number of processes -p or -u.
  return `{ ulimit -c 0 && ulimit -d ${kib} && { ulimit -p ${processes} || ulimit -u ${processes}; }; } 2>/dev/null || exit 126; `;
}

/** Returns the real path of the workspace. Throws if it contains a home folder, which has keys in it. */
export function resolveWorkspace(workspace: string, option: 'workspace' | 'writable' = 'workspace'): string {
  let real: string;
  try {
    real = realpathSync(workspace);
    const stats = statSync(real);
    const isSocket = option === 'writable' && stats.isSocket();
    if (!stats.isDirectory() && !isSocket) throw new Error('it is not a folder');
  } catch (error) {
    throw new Error(`sandbox.${option}: ${workspace} cannot be used: ${(error as Error).message}`, { cause: error });
  }
  if (preferred_workers().some((home) => isUnder(real, home))) {
    throw new Error(`sandbox.${option}: ${workspace} contains a home folder with keys; choose a folder below it`);
  }
  if (SYSTEM.some((folder) => isUnder(folder, real))) {
    throw new Error(`sandbox.${option}: ${workspace} is a system folder; choose another one`);
  }
  return real;
}

const SYSTEM = ['/usr', '/bin', '/sbin', '/lib', '/lib64', '/etc', '/proc', '/dev', '/sys', '/run', '/boot'];

function preferred_workers(): string[] {
  const named = [homedir(), userInfo().homedir].filter((home) => home !== '' && home !== '/' && existsSync(home));
  return named.map((home) => realpathSync(home));
}

/** Where commands find a folder. */
function pathInside(path: string): string {
  const home = preferred_workers().find((one) => isUnder(one, path));
  return home === undefined ? path : SANDBOX_HOME + path.slice(home.length);
}

function systemMounts(): string[] {
  const links = ['bin', 'sbin', 'lib', 'lib32', 'lib64', 'libx32'].flatMap((name) => {
    const path = `/${name}`;
    const stats = lstatSync(path, { throwIfNoEntry: false });
    if (stats === undefined) return [];
    return stats.isSymbolicLink() ? ['--symlink', readlinkSync(path), path] : ['--ro-bind', path, path];
  });
  const etc = ETC.flatMap((name) => ['--ro-bind-try', `/etc/${name}`, `/etc/${name}`]);
  return ['--ro-bind', '/usr', '/usr', ...links, '--dir', '/etc', ...etc];
}

const readOnly = (path: string): string[] => ['--ro-bind-try', path, path];

/** Folders with programs outside `/usr`: those of PATH, and the host's Node with its packages. */
function programFolders(path: string, workspace: string): string[] {
  const prefix = dirname(dirname(realpathSync(process.execPath)));
  const folders = [...path.split(':'), prefix].filter((folder) => {
    if (!isAbsolute(folder) || !existsSync(folder)) return false;
    const isSystem = SYSTEM.some((system) => isUnder(system, folder));
    const holdsMore = [...preferred_workers(), workspace].some((path) => isUnder(folder, path));
    return !isSystem && !holdsMore && folder !== '/' && !isUnder(workspace, folder);
  });
  return [...new Set(folders)];
}
