// npm run release -- --publish   publishes what the changesets have versioned; the release workflow does
// npm run release -- --dry-run   nothing leaves the machine: everything is packed, and installed into empty projects with npm,
//                                pnpm and Yarn
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { importAll, type Packed, pack, withoutPages } from './packed.ts';

const [way, ...others] = process.argv.slice(2);
const root = join(import.meta.dirname, '..');

interface Manager {
  readonly name: string;
  readonly install: readonly string[];
  /** How a program is run that may import what was installed. */
  readonly node: readonly string[];
}

const PNPM = ['npx', '--yes', 'pnpm@12.18.0'];
const YARN = ['npx', '--yes', '--package', '@yarnpkg/cli-dist@4.18.1', 'yarn'];
const MANAGERS: readonly Manager[] = [
  { name: 'npm', install: ['npm', 'install', '--no-audit', '--no-fund'], node: ['node'] },
  { name: 'pnpm', install: [...PNPM, 'install'], node: ['node'] },
  { name: 'Yarn', install: [...YARN, 'install'], node: [...YARN, 'node'] },
];

/** Peers that a package cannot do without. Yarn does not install them by itself. */
const PEERS = { bullmq: '6' };
/** pnpm asks about every script of an install. BullMQ works without this one. */
const BUILDS = { 'msgpackr-extract': false };
/** As in our own overrides: newer versions are not published for every platform, which Yarn refuses. */
const PINS = { 'msgpackr-extract': '3.0.4' };

function run([file = '', ...args]: readonly string[], cwd: string): string {
  return execFileSync(file, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
}

/** Installs everything into an empty project, and imports it there. */
function tryWith({ name, install, node }: Manager, { tarballs, entries }: Packed, work: string): void {
  const cwd = join(work, name);
  mkdirSync(cwd);
  const files = Object.fromEntries([...tarballs].map(([name, file]) => [name, `file:${file}`]));
  // Packages that nobody has published yet ask for each other by version: the files stand in for them.
  const manifest = {
    private: true,
    type: 'module',
    dependencies: { ...files, ...PEERS },
    resolutions: { ...files, ...PINS },
  };
  writeFileSync(join(cwd, 'package.json'), JSON.stringify(manifest));
  writeFileSync(join(cwd, 'imports.mjs'), importAll(withoutPages(entries)));
  writeFileSync(
    join(cwd, 'pnpm-workspace.yaml'),
    JSON.stringify({ overrides: { ...files, ...PINS }, allowBuilds: BUILDS }),
  );
  // Without one of its own, Yarn takes a folder further up for the project.
  if (name === 'Yarn') writeFileSync(join(cwd, 'yarn.lock'), '');
  run(install, cwd);
  run([...node, 'imports.mjs'], cwd);
  console.log(`${name}: every entry imports`);
}

if (way === '--dry-run' && others.length === 0) {
  const work = mkdtempSync(join(tmpdir(), 'whoa-release-'));
  try {
    const packed = pack(work);
    for (const manager of MANAGERS) tryWith(manager, packed, work);
    console.log(
      'Nothing was published. `npm run release -- --publish` publishes what is versioned and not yet on the registry.',
    );
  } finally {
    rmSync(work, { recursive: true });
  }
} else if (way === '--publish' && others.length === 0) {
  run(['npm', 'run', '-s', 'build'], root);
  console.log(run([join(root, 'node_modules/.bin/changeset'), 'publish'], root));
} else {
  // Without a word nothing is published: npm keeps `npm run release --dry-run` to itself.
  console.error('release: say what to do: npm run release -- --dry-run, or npm run release -- --publish');
  process.exitCode = 2;
}
