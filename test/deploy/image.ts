// The image of deploy/, built by Debian's buildah and run by podman, without an image registry: the base image is made of
// Debian's packages and the Node that runs this test, under the name in the Dockerfile.
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect } from 'vitest';
import { startRegistry } from '../../scripts/registry.ts';
import { ROOT } from '../docs/pages.ts';

const BASE = 'docker.io/library/node:24-bookworm-slim';
export const IMAGE = 'localhost/whoa';
const PROGRAMS = ['buildah', 'podman', 'runc', 'debootstrap', 'ip'];
const missing = PROGRAMS.filter((program) => spawnSync('which', [program]).status !== 0);
const isRoot = process.getuid?.() === 0;
/** Why there can be no image here, or nothing. */
export const reason: string =
  missing.length > 0 ? `${missing.join(', ')} is not installed` : isRoot ? '' : 'it needs root';

/** Images are kept between runs, because the base image takes minutes. */
const CACHE = join(ROOT, '.cache/image');
/** Where overlays can be mounted, containers share the image; otherwise each copies it. */
const DRIVER = canOverlay() ? 'overlay' : 'vfs';
const STORAGE = join(CACHE, DRIVER);
const storage = ['--storage-driver', DRIVER, '--root', join(STORAGE, 'storage'), '--runroot', join(STORAGE, 'run')];
export const buildah = (...args: string[]): string =>
  execFileSync('buildah', [...storage, ...args], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }).trim();

/** What works on machines without their own cgroups: runc, and limits that a container may have. */
export const PODMAN: readonly string[] = ['podman', '--runtime', 'runc', '--cgroup-manager', 'cgroupfs', ...storage];
const LIMITS = ['--ulimit', 'nofile=1024:1024', '--ulimit', 'nproc=1024:1024'];
/** The start of each `podman run`. */
export const RUN: readonly string[] = [...PODMAN, 'run', '--pull=never', '--rm', ...LIMITS];

function canOverlay(): boolean {
  if (!isRoot || missing.length > 0) return false;
  mkdirSync(CACHE, { recursive: true });
  const folder = mkdtempSync(join(CACHE, 'try-'));
  const [lower, upper, work, merged] = ['lower', 'upper', 'work', 'merged'].map((name) => join(folder, name));
  for (const path of [lower!, upper!, work!, merged!]) mkdirSync(path);
  const options = `lowerdir=${lower},upperdir=${upper},workdir=${work}`;
  const isMounted = spawnSync('mount', ['-t', 'overlay', 'overlay', '-o', options, merged!]).status === 0;
  if (isMounted) execFileSync('umount', [merged!]);
  rmSync(folder, { recursive: true });
  return isMounted;
}

/** Makes the base image if it is not there, and builds ours on it. */
export async function buildImage(): Promise<void> {
  mkdirSync(STORAGE, { recursive: true });
  makeBase();
  await build();
}

function makeBase(): void {
  if (spawnSync('buildah', [...storage, 'inspect', '--type', 'image', BASE]).status === 0) return;
  const root = join(STORAGE, 'base');
  rmSync(root, { recursive: true, force: true });
  mkdirSync(root, { recursive: true });
  const run = (file: string, ...args: string[]): unknown =>
    execFileSync(file, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  const mirror = 'http://deb.debian.org/debian';
  run('debootstrap', '--variant=minbase', '--include=ca-certificates', 'bookworm', root, mirror);
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

/** The command of the page, for a copy of the folder, with a builder that works here. */
async function build(): Promise<void> {
  const work = mkdtempSync(join(tmpdir(), 'whoa-image-'));
  try {
    // It has everything but our packages, which are on no registry.
    await using registry = await startRegistry(join(work, 'registry'));
    const cwd = join(work, 'deploy');
    cpSync(join(ROOT, 'deploy'), cwd, { recursive: true });
    pinPlatformPackages(join(cwd, 'package.json'));
    const from = ['--build-arg', `npm_config_registry=${registry.url}`];
    const builder = ['buildah', ...storage, 'bud', '--quiet', '--isolation', 'chroot', '--pull-never', ...from];
    execFileSync('npm', ['run', 'image', '--', cwd, ...builder, '-t', IMAGE], {
      cwd: ROOT,
      env: { ...process.env, npm_config_registry: registry.url },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    // Wherever it is installed from, it is the same: only hashes.
    expect(readFileSync(join(cwd, 'package-lock.json'), 'utf8')).not.toMatch(/https?:\/\/[^"]*\.tgz/);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/**
 * A mirror can have a newer version for one platform only, which makes every lock file incomplete: pin the version of
 * ours.
 */
function pinPlatformPackages(manifest: string): void {
  const read = (file: string): Record<string, unknown> => JSON.parse(readFileSync(file, 'utf8')) as never;
  const { packages } = read(join(ROOT, 'package-lock.json')) as { packages: Record<string, { version: string }> };
  const before = read(manifest);
  const overrides = {
    ...(before['overrides'] as object),
    'msgpackr-extract': packages['node_modules/msgpackr-extract']!.version,
  };
  writeFileSync(manifest, JSON.stringify({ ...before, overrides }));
}
