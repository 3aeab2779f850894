// What is chosen, what that proves and what `isolate` says on machines that lack something.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { ROOT } from '../docs/pages.ts';

interface Ran {
  readonly technique?: string;
  readonly verified?: string;
  readonly survivors?: number;
  readonly error?: string;
}

interface Said {
  readonly reasons: Readonly<Record<string, string>>;
  readonly byDefault: Ran;
  readonly isolated: Ran;
}

const SAY = [process.execPath, '--conditions=@whoa/source', join(import.meta.dirname, 'say-choice.ts')];
const NOBODY = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', 'env', 'HOME=/nonexistent'];
const hide = (...programs: string[]): string =>
  programs.map((program) => `mount --bind /dev/null "$(readlink -f "$(which ${program})")"; `).join('');
/** A mount namespace in which a script changed something. */
const after = (script: string): string[] => ['unshare', '--mount', 'sh', '-ec', `${script}exec "$@"`, 'sh'];
const WITHOUT_CGROUPS = 'for m in $(awk \'/ - cgroup2 /{print $5}\' /proc/self/mountinfo); do umount "$m"; done; ';
/** A user namespace in which no other can be created, and a user there without rights. */
const WITHOUT_USER_NAMESPACES = [
  ...NOBODY,
  'unshare',
  '--user',
  '--map-current-user',
  '--keep-caps',
  'sh',
  '-ec',
  'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"',
  'sh',
  'setpriv',
  '--ambient-caps=-all',
  '--inh-caps=-all',
];

const TAGS = { technique: 'tags', verified: 'tags', survivors: 0 };
const CGROUP = { technique: 'cgroup', verified: 'cgroup', survivors: 0 };
const NAMESPACE = { technique: 'namespace', verified: 'namespace', survivors: 0 };
const NOT_INSTALLED = 'neither unshare nor bubblewrap is installed';
const NO_WRITE = 'this process may not write to its cgroup';
const NO_TREE = 'there is no cgroup v2 mount in which this process is';

const MACHINES: readonly (readonly [name: string, argv: readonly string[], said: Partial<Said>])[] = [
  [
    'root on a whole machine',
    [],
    { reasons: { cgroup: 'works', namespace: 'works' }, byDefault: CGROUP, isolated: NAMESPACE },
  ],
  ['root without bubblewrap', after(hide('bwrap')), { byDefault: CGROUP, isolated: NAMESPACE }],
  [
    'root without bubblewrap and unshare',
    after(hide('bwrap', 'unshare')),
    { reasons: { namespace: NOT_INSTALLED }, byDefault: CGROUP },
  ],
  [
    'root without cgroups',
    after(WITHOUT_CGROUPS),
    { reasons: { cgroup: NO_TREE }, byDefault: TAGS, isolated: NAMESPACE },
  ],
  [
    'root without either',
    after(hide('bwrap', 'unshare') + WITHOUT_CGROUPS),
    { reasons: { cgroup: NO_TREE, namespace: NOT_INSTALLED }, byDefault: TAGS },
  ],
  ['a user', NOBODY, { reasons: { cgroup: NO_WRITE }, byDefault: TAGS, isolated: NAMESPACE }],
  [
    'a user without either',
    [...after(hide('bwrap', 'unshare')), ...NOBODY],
    { reasons: { cgroup: NO_WRITE, namespace: NOT_INSTALLED }, byDefault: TAGS },
  ],
  [
    'a user without user namespaces',
    WITHOUT_USER_NAMESPACES,
    {
      reasons: { cgroup: NO_WRITE, namespace: expect.stringContaining('max_*_namespaces') as string },
      byDefault: TAGS,
    },
  ],
];

function ask(argv: readonly string[]): Said {
  const [file = '', ...args] = [...argv, ...SAY];
  const { stdout, stderr } = spawnSync(file, args, { encoding: 'utf8', timeout: 60_000 });
  expect(stdout, stderr).toMatch(/^\{/);
  return JSON.parse(stdout) as Said;
}

/** Never a weaker one: where a namespace does not work, `isolate` starts nothing and gives the reason. */
function expectRefusal({ reasons, isolated }: Said): void {
  const refusal = `The containment 'namespace' does not work here: ${reasons['namespace']}`;
  if (reasons['namespace'] === 'works') expect(isolated.error).toBeUndefined();
  else expect(isolated.error).toContain(refusal);
}

const isRoot = process.getuid?.() === 0;

test.runIf(isRoot).each(MACHINES)('%s', (_name, argv, expected) => {
  const said = ask(argv);
  expect(said).toMatchObject(expected);
  expectRefusal(said);
});

const hasRunc = ['podman', 'runc'].every((program) => spawnSync('which', [program]).status === 0);

/** A container of the programs of this machine, with the default profile: its seccomp filter, rights and read-only trees. */
function inContainer(...options: string[]): string[] {
  const rootfs = mkdtempSync(join(tmpdir(), 'whoa-rootfs-'));
  onTestFinished(() => rmSync(rootfs, { recursive: true }));
  for (const folder of ['usr', 'etc', 'proc', 'sys', 'dev', 'tmp']) mkdirSync(join(rootfs, folder));
  for (const link of ['bin', 'sbin', 'lib', 'lib64']) symlinkSync(`usr/${link}`, join(rootfs, link));
  const mounts = ['/usr', ROOT, dirname(process.execPath)].flatMap((path) => ['--volume', `${path}:${path}:ro`]);
  const limits = ['--ulimit', 'nofile=1024:1024', '--ulimit', 'nproc=1024:1024'];
  const podman = ['podman', '--runtime', 'runc', '--cgroup-manager', 'cgroupfs', 'run', '--rm', '--pull=never'];
  return [...podman, ...limits, ...options, '--network', 'none', '--tmpfs', '/tmp', ...mounts, '--rootfs', rootfs];
}

test.runIf(isRoot && hasRunc).each([
  ['root', []],
  ['a user', ['--user', '1000:1000']],
])("%s in a container with Docker's default profile", (_name, options) => {
  const said = ask(inContainer(...options));
  expect(said).toMatchObject({ byDefault: TAGS });
  expect(said.reasons['cgroup']).not.toBe('works');
  expect(said.reasons['namespace']).toMatch(/not permitted/i);
  expectRefusal(said);
});

test.runIf(isRoot && hasRunc)('root in a privileged container may isolate', () => {
  expect(ask(inContainer('--privileged')).isolated).toEqual(NAMESPACE);
});
