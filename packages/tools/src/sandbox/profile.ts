import { existsSync, lstatSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { homedir, userInfo } from 'node:os';
import { dirname, isAbsolute, join, relative, sep } from 'node:path';
import type { SandboxKind, SandboxLimits } from './options.ts';

/** Where commands find what belongs to nobody else. */
const SANDBOX_HOME = '/home/agent';
const SHM_BYTES = 2 ** 28;

/** What of `/etc` programs need to run at all. No keys, no names of machines, nothing of a service. */
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
  /** With every link resolved. */
  readonly workspace: string;
  readonly readable: readonly string[];
  readonly limits: Required<SandboxLimits>;
  /** More that is mounted: the socket of the proxy. */
  readonly mounts: readonly string[];
}

/** Bubblewrap's arguments for one command. The order counts: what comes later lies on top. */
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
    // Root keeps every capability without the first; without the second, a namespace in the namespace gets them again.
    ['--cap-drop', 'ALL', '--disable-userns', '--die-with-parent', '--new-session', '--hostname', 'sandbox'],
    systemMounts(),
    ['--proc', '/proc', '--dev', '/dev', '--size', `${SHM_BYTES}`, '--tmpfs', '/dev/shm'],
    ['--size', temp, '--tmpfs', '/tmp', '--size', temp, '--tmpfs', SANDBOX_HOME, '--dir', '/var/tmp'],
    [...programFolders(env['PATH'] ?? '', workspace), ...profile.readable].flatMap(readOnly),
    [kind === 'workspace' ? '--bind' : '--ro-bind', workspace, workspace],
    kind === 'workspace' ? guardGit(workspace) : [],
    mounts,
    // Read-only last: Linux lets whoever is root outside write to /proc/sys, with or without capabilities.
    ['--remount-ro', '/proc', '--remount-ro', '/dev', '--remount-ro', '/', '--clearenv'],
    variables.flatMap(([name, value]) => ['--setenv', name, value!]),
    ['--chdir', cwd],
  ].flat();
}

/** Sets the limits of whatever follows, or ends: a sandbox without them is not the one that was asked for. */
export function limitScript({ memoryBytes, processes }: Required<SandboxLimits>): string {
  const kib = Math.ceil(memoryBytes / 1024);
  // Shells call the number of processes -p or -u.
  return `{ ulimit -c 0 && ulimit -d ${kib} && { ulimit -p ${processes} || ulimit -u ${processes}; }; } 2>/dev/null || exit 126; `;
}

/** The folder to work in, with every link resolved. One that holds a home is refused: it holds the keys too. */
export function resolveWorkspace(workspace: string): string {
  let real: string;
  try {
    real = realpathSync(workspace);
    if (!statSync(real).isDirectory()) throw new Error('it is not a folder');
  } catch (error) {
    throw new Error(`sandbox.workspace: ${workspace} cannot be used: ${(error as Error).message}`, { cause: error });
  }
  if (homes().some((home) => isUnder(real, home))) {
    throw new Error(`sandbox.workspace: ${workspace} holds a home folder, and keys with it; work in a folder below it`);
  }
  if (SYSTEM.some((folder) => isUnder(folder, real))) {
    throw new Error(`sandbox.workspace: ${workspace} belongs to the system; work in a folder of your own`);
  }
  return real;
}

const SYSTEM = ['/usr', '/bin', '/sbin', '/lib', '/lib64', '/etc', '/proc', '/dev', '/sys', '/run', '/boot'];

/** Whether a path is a folder or lies in it. */
export function isUnder(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way === '' || !(way === '..' || way.startsWith(`..${sep}`) || isAbsolute(way));
}

function homes(): string[] {
  const named = [homedir(), userInfo().homedir].filter((home) => home !== '' && home !== '/' && existsSync(home));
  return named.map((home) => realpathSync(home));
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

/** Where programs are that were installed elsewhere: the folders of the path, and the host's own Node with its packages. */
function programFolders(path: string, workspace: string): string[] {
  const prefix = dirname(dirname(realpathSync(process.execPath)));
  const folders = [...path.split(':'), prefix].filter((folder) => {
    if (!isAbsolute(folder) || !existsSync(folder)) return false;
    const isSystem = SYSTEM.some((system) => isUnder(system, folder));
    const holdsMore = [...homes(), workspace].some((path) => isUnder(folder, path));
    return !isSystem && !holdsMore && folder !== '/' && !isUnder(workspace, folder);
  });
  return [...new Set(folders)];
}

/**
 * Git runs what stands in its hooks and its configuration, outside and later. `.git` itself becomes a mount, which cannot
 * be renamed away from over them. One that is a file names a folder elsewhere; it is not followed, and stays as it is.
 */
function guardGit(workspace: string): string[] {
  const git = join(workspace, '.git');
  const stats = lstatSync(git, { throwIfNoEntry: false });
  if (stats === undefined) return [];
  if (!stats.isDirectory()) return ['--ro-bind', git, git];
  const [hooks, config] = [join(git, 'hooks'), join(git, 'config')];
  const guarded = isPlain(hooks, 'folder') ? ['--ro-bind', hooks, hooks] : ['--tmpfs', hooks, '--remount-ro', hooks];
  return ['--bind', git, git, ...guarded, '--ro-bind', isPlain(config, 'file') ? config : '/dev/null', config];
}

function isPlain(path: string, kind: 'file' | 'folder'): boolean {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  return kind === 'file' ? stats?.isFile() === true : stats?.isDirectory() === true;
}
