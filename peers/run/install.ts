import { spawnSync } from 'node:child_process';
import { copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const here = join(import.meta.dirname, '..');

/** The manifest with the libraries. */
export interface PeersManifest {
  readonly dependencies: Readonly<Record<string, string>>;
  /** Packages with everything in one file, whose dependencies are not on every registry. */
  readonly packed: Readonly<Record<string, string>>;
}

export const manifest = JSON.parse(readFileSync(join(here, 'package.json'), 'utf8')) as PeersManifest;

/** Installs the libraries into a folder outside the workspace, and copies the adapters next to them. */
export function installPeers(folder: string): void {
  mkdirSync(join(folder, 'packed'), { recursive: true });
  cpSync(join(here, 'adapters'), join(folder, 'adapters'), { recursive: true });
  const lock = readFileSync(join(here, 'package-lock.json'), 'utf8');
  const done = join(folder, 'installed-lock.json');
  if (existsSync(done) && readFileSync(done, 'utf8') === lock) return;
  for (const file of ['package.json', 'package-lock.json']) copyFileSync(join(here, file), join(folder, file));
  npm(folder, ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error']);
  for (const [name, version] of Object.entries(manifest.packed)) {
    const into = join(folder, 'packed');
    const file =
      npm(into, ['pack', '--silent', `${name}@${version}`])
        .trim()
        .split('\n')
        .at(-1) ?? '';
    run('tar', ['-xzf', file], into);
  }
  writeFileSync(done, lock);
}

const npm = (cwd: string, args: readonly string[]): string => run('npm', args, cwd);

function run(command: string, args: readonly string[], cwd: string): string {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8', timeout: 600_000 });
  if (status !== 0) throw new Error(`${command} ${args[0]} failed: ${stderr.trim().split('\n').at(-1)}`);
  return stdout;
}
