// npm run release -- --publish   publishes what the changesets have versioned; the release workflow does
// npm run release -- --dry-run   nothing leaves the machine: everything is packed and published to a registry on loopback; from
//                                there it is installed with npm, pnpm and Yarn, tried as a new user would, and listed in an SBOM
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pack } from './packed.ts';
import { startRegistry } from './registry.ts';
import { toEnvironment, tryManagers } from './release/managers.ts';
import { writeSbom } from './release/sbom.ts';
import { tryDemo, tryFirstSteps } from './release/stranger.ts';

const [way, ...others] = process.argv.slice(2);
const root = join(import.meta.dirname, '..');

async function rehearse(): Promise<void> {
  const work = mkdtempSync(join(tmpdir(), 'whoa-release-'));
  try {
    const packed = pack(work);
    await using registry = await startRegistry(join(work, 'registry'));
    for (const tarball of packed.tarballs.values()) registry.publish(tarball);
    const env = toEnvironment(registry.url, work);
    await tryDemo(work, env);
    tryFirstSteps(work, env);
    const project = tryManagers(packed, work, env);
    const folder = join(root, '.cache/release');
    mkdirSync(folder, { recursive: true });
    await writeSbom(project, join(folder, `whoa-${packed.versions.get('whoa')}.cdx.json`), packed.versions);
    console.log(
      'Nothing was published. `npm run release -- --publish` publishes what is versioned and not yet on the registry.',
    );
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

if (way === '--dry-run' && others.length === 0) await rehearse();
else if (way === '--publish' && others.length === 0) {
  const run = (file: string, ...args: string[]): void => void execFileSync(file, args, { cwd: root, stdio: 'inherit' });
  run('npm', 'run', '-s', 'build');
  run(join(root, 'node_modules/.bin/changeset'), 'publish');
} else {
  // Publish only on an explicit flag: npm does not pass on the flag of `npm run release --dry-run`.
  console.error('release: choose one: npm run release -- --dry-run, or npm run release -- --publish');
  process.exitCode = 2;
}
