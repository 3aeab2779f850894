// Installs every package from a registry into empty projects, with each package manager, and imports every entry there.
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { importAll, type Packed, PEERS_OF_PAGES, toLocked, withoutPages } from '../packed.ts';

interface Manager {
  readonly name: string;
  readonly install: readonly string[];
  /** The command that runs a program which may import the installed packages. */
  readonly node: readonly string[];
}

const PNPM = ['npx', '--yes', 'pnpm@12.18.0'];
const YARN = ['npx', '--yes', '--package', '@yarnpkg/cli-dist@4.18.1', 'yarn'];
const MANAGERS: readonly Manager[] = [
  { name: 'npm', install: ['npm', 'install', '--no-audit', '--no-fund'], node: ['node'] },
  { name: 'pnpm', install: [...PNPM, 'install'], node: ['node'] },
  { name: 'Yarn', install: [...YARN, 'install'], node: [...YARN, 'node'] },
];

/** Required peers. Yarn does not install them by itself. */
const PEERS = { bullmq: '6' };
/** pnpm requires a decision about every install script. BullMQ works without this one. */
const BUILDS = { 'msgpackr-extract': false };
/** As in our own overrides: newer versions are not published for every platform, which Yarn refuses. */
const PINS = { 'msgpackr-extract': '3.0.4' };

/** Tries all package managers. Returns the folder of npm's project. */
export function tryManagers({ versions, entries }: Packed, work: string, env: NodeJS.ProcessEnv): string {
  for (const { name, install, node } of MANAGERS) {
    const cwd = join(work, name);
    const run = ([file = '', ...args]: readonly string[]): string =>
      execFileSync(file, args, { cwd, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
    mkdirSync(cwd);
    const dependencies = { ...Object.fromEntries(versions), ...PEERS };
    const manifest = { name: 'stranger', version: '1.0.0', private: true, type: 'module', dependencies };
    writeFileSync(join(cwd, 'package.json'), JSON.stringify({ ...manifest, resolutions: PINS, overrides: PINS }));
    writeFileSync(join(cwd, 'imports.mjs'), importAll(withoutPages(entries)));
    // Packages that were published a moment ago are too young for pnpm's default.
    const settings = { overrides: PINS, allowBuilds: BUILDS, minimumReleaseAge: 0 };
    writeFileSync(join(cwd, 'pnpm-workspace.yaml'), JSON.stringify(settings));
    // pnpm does not read the environment of npm.
    writeFileSync(join(cwd, '.npmrc'), `registry=${env['npm_config_registry']}\n`);
    // Without its own lockfile, Yarn takes a parent folder for the project.
    if (name === 'Yarn') writeFileSync(join(cwd, 'yarn.lock'), '');
    run(install);
    run([...node, 'imports.mjs']);
    console.log(`${name}: every entry imports`);
  }
  const npm = join(work, 'npm');
  const peers = ['install', '--no-audit', '--no-fund', ...PEERS_OF_PAGES.map(toLocked)];
  execFileSync('npm', peers, { cwd: npm, env, stdio: ['ignore', 'ignore', 'inherit'] });
  writeFileSync(join(npm, 'imports.mjs'), importAll(entries));
  execFileSync('node', ['imports.mjs'], { cwd: npm, env, stdio: 'inherit' });
  console.log(`npm: with ${PEERS_OF_PAGES.join(', ')} the entries for pages import too`);
  return npm;
}

/** The environment in which npm, pnpm and Yarn use a registry on this machine, with empty caches. */
export function toEnvironment(registry: string, work: string): NodeJS.ProcessEnv {
  return {
    ...process.env,
    npm_config_registry: registry,
    npm_config_cache: join(work, 'npm-cache'),
    pnpm_config_store_dir: join(work, 'pnpm-store'),
    YARN_NPM_REGISTRY_SERVER: registry,
    YARN_UNSAFE_HTTP_WHITELIST: '127.0.0.1',
    YARN_NPM_MINIMAL_AGE_GATE: '0',
    YARN_GLOBAL_FOLDER: join(work, 'yarn'),
    XDG_STATE_HOME: join(work, 'state'),
    XDG_CONFIG_HOME: join(work, 'config'),
  };
}
