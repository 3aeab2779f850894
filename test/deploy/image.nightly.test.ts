// The image of deploy/Dockerfile, built by Debian's buildah and run by podman, without an image registry: the base
// image is made of Debian's packages and the Node that runs this test, under the name in the Dockerfile.
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { pack } from '../../scripts/packed.ts';
import { startRegistry } from '../../scripts/registry.ts';
import { startProcess } from '../command/process.ts';
import { ROOT } from '../docs/pages.ts';
import { freePort } from '../servers/free-port.ts';
import { startRedis } from '../servers/redis.ts';

const TOKEN = 'a-token-for-the-tests-of-the-image';
const BASE = 'docker.io/library/node:24-bookworm-slim';
const IMAGE = 'localhost/whoa';
const PROGRAMS = ['buildah', 'podman', 'runc', 'debootstrap'];
const missing = PROGRAMS.filter((program) => spawnSync('which', [program]).status !== 0);
const isRoot = process.getuid?.() === 0;
const reason = missing.length > 0 ? `${missing.join(', ')} is not installed` : isRoot ? '' : 'it needs root';

/** Images are kept between runs, because the base image takes minutes. */
const STORAGE = join(ROOT, '.cache/image');
const storage = ['--storage-driver', 'vfs', '--root', join(STORAGE, 'storage'), '--runroot', join(STORAGE, 'run')];
const buildah = (...args: string[]): string =>
  execFileSync('buildah', [...storage, ...args], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }).trim();

/** What works on machines without their own cgroups: runc, and limits that a container may have. */
const PODMAN = ['podman', '--runtime', 'runc', '--cgroup-manager', 'cgroupfs', ...storage];
const LIMITS = ['--ulimit', 'nofile=1024:1024', '--ulimit', 'nproc=1024:1024'];
/** As in compose.yaml: only /tmp and /workspace are writable. */
const CONTAINED = ['--read-only', '--user', '1000:1000', '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges'];
const WRITABLE = ['--tmpfs', '/tmp', '--tmpfs', '/workspace'];

function podman(env: Readonly<Record<string, string>>, args: readonly string[]): string[] {
  const given = Object.entries(env).flatMap(([name, value]) => ['--env', `${name}=${value}`]);
  const where = ['--pull=never', '--rm', '--network', 'host', ...LIMITS, ...CONTAINED, ...WRITABLE];
  return [...PODMAN, 'run', ...where, ...given, IMAGE, ...args, '--config', '/app/whoa.config.ts'];
}

function makeBase(): void {
  if (spawnSync('buildah', [...storage, 'inspect', '--type', 'image', BASE]).status === 0) return;
  const root = join(STORAGE, 'base');
  rmSync(root, { recursive: true, force: true });
  mkdirSync(root, { recursive: true });
  const run = (file: string, ...args: string[]): unknown =>
    execFileSync(file, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  run(
    'debootstrap',
    '--variant=minbase',
    '--include=ca-certificates',
    'bookworm',
    root,
    'http://deb.debian.org/debian',
  );
  const local = join(root, 'usr/local');
  cpSync(process.execPath, join(local, 'bin/node'));
  // The npm that runs here, next to the program that a link leads to.
  const npm = join(dirname(realpathSync(execFileSync('which', ['npm'], { encoding: 'utf8' }).trim())), '..');
  cpSync(npm, join(local, 'lib/node_modules/npm'), { recursive: true, dereference: true });
  for (const name of ['npm', 'npx'])
    run('ln', '-s', `../lib/node_modules/npm/bin/${name}-cli.js`, join(local, 'bin', name));
  run('chroot', root, 'groupadd', '--gid', '1000', 'node');
  run('chroot', root, 'useradd', '--uid', '1000', '--gid', 'node', '--create-home', 'node');
  const container = buildah('from', 'scratch');
  buildah('add', '--quiet', container, root, '/');
  buildah('commit', '--quiet', container, BASE);
  buildah('rm', container);
  rmSync(root, { recursive: true });
}

/**
 * A mirror can have a newer version for one platform only, which makes every lock file incomplete: pin the version of
 * ours.
 */
function pinPlatformPackages(manifest: string): void {
  const read = (file: string): Record<string, unknown> => JSON.parse(readFileSync(file, 'utf8')) as never;
  const { packages } = read(join(ROOT, 'package-lock.json')) as { packages: Record<string, { version: string }> };
  const overrides = { 'msgpackr-extract': packages['node_modules/msgpackr-extract']!.version };
  writeFileSync(manifest, JSON.stringify({ ...read(manifest), overrides }));
}

async function build(): Promise<void> {
  const work = mkdtempSync(join(tmpdir(), 'whoa-image-'));
  try {
    const { tarballs } = pack(work);
    await using registry = await startRegistry(join(work, 'registry'));
    for (const tarball of tarballs.values()) registry.publish(tarball);
    const cwd = join(work, 'deploy');
    cpSync(join(ROOT, 'deploy'), cwd, { recursive: true });
    pinPlatformPackages(join(cwd, 'package.json'));
    const lock = ['install', '--package-lock-only', '--omit-lockfile-registry-resolved', '--no-audit', '--no-fund'];
    execFileSync('npm', [...lock, '--registry', registry.url], { cwd, stdio: ['ignore', 'ignore', 'inherit'] });
    // Wherever it is installed from, it is the same: only hashes.
    expect(readFileSync(join(cwd, 'package-lock.json'), 'utf8')).not.toMatch(/https?:\/\/[^"]*\.tgz/);
    const from = ['--build-arg', `npm_config_registry=${registry.url}`];
    buildah('bud', '--quiet', '--isolation', 'chroot', '--pull-never', ...from, '-t', IMAGE, cwd);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

describe.skipIf(reason !== '')('the image', () => {
  let redis: Awaited<ReturnType<typeof startRedis>>;
  beforeAll(async () => {
    mkdirSync(STORAGE, { recursive: true });
    makeBase();
    await build();
    redis = await startRedis({ appendfsync: 'none' });
  }, 1_800_000);
  afterAll(() => redis?.[Symbol.asyncDispose]());

  const start = (args: readonly string[], env: Record<string, string> = {}) => {
    const given = { STORE_URL: redis.url, WHOA_TOKEN: TOKEN, ...env };
    const folder = mkdtempSync(join(tmpdir(), 'whoa-image-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    return startProcess([...podman(given, args), '--json'], {
      cwd: folder,
      env: process.env as Record<string, string>,
    });
  };

  test('the image plans a migration, runs a server and a worker, not as root and without writing to itself, and ends in its grace period', async () => {
    const [command = '', ...rest] = podman({ STORE_URL: redis.url }, ['migrate', '--plan']);
    const planned = spawnSync(command, rest, { encoding: 'utf8' });
    expect(planned.status, planned.stderr).toBe(0);
    const startedAt = performance.now();
    const server = start(['serve', '--host', '127.0.0.1', '--port', `${await freePort()}`]);
    const { url } = (await server.waitFor({ type: 'listening' })) as { url: string };
    const startMs = performance.now() - startedAt;
    const health = await freePort();
    const worker = start(['worker', '--sandbox', 'none', '--yes', '--health-port', `${health}`], {
      WHOA_MODEL: 'compatible:http://127.0.0.1:9/v1:none',
    });
    await worker.waitFor({ type: 'working' });
    expect((await fetch(`http://127.0.0.1:${health}/readyz`)).status).toBe(200);
    const created = await fetch(`${url}/v1/tasks`, {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify({ agent: 'assistant', input: 'hello' }),
    });
    const { id } = ((await created.json()) as { task: { id: string } }).task;
    // No model answers there: the task reaches the worker, and that is all it shows.
    await worker.waitFor({ type: 'task-start', id });
    const stoppedAt = performance.now();
    for (const one of [server, worker]) one.kill('SIGTERM');
    expect(await Promise.all([server.closed, worker.closed])).toEqual([
      [0, null],
      [0, null],
    ]);
    const stopMs = performance.now() - stoppedAt;
    expect(stopMs).toBeLessThan(47_000);
    const [{ size }] = JSON.parse(buildah('images', '--json', IMAGE)) as [{ size: string }];
    console.log(JSON.stringify({ size, startMs: Math.round(startMs), stopMs: Math.round(stopMs) }));
  });

  test('the user of the image is not root, and can write to /tmp but not to the root file system', () => {
    const [command = '', ...rest] = PODMAN;
    const inside = [
      '--pull=never',
      '--rm',
      '--network',
      'none',
      ...LIMITS,
      ...CONTAINED,
      ...WRITABLE,
      '--entrypoint',
      'sh',
    ];
    const script = 'id -u; touch /app/x 2>/dev/null || echo read-only; touch /tmp/x && echo writable';
    const { stdout, stderr } = spawnSync(command, [...rest, 'run', ...inside, IMAGE, '-c', script], {
      encoding: 'utf8',
    });
    expect(stdout.trim().split('\n'), stderr).toEqual(['1000', 'read-only', 'writable']);
  });
});

test.runIf(reason !== '')(`the image is not built: ${reason}`, () => {});
