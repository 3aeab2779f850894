// Tests that take too long for every change, or install too much: upgrades, peers, faulty agents of the check kit, other
// runtimes, engines and frameworks, races, every scenario of a chat, the applications of examples/apps, and the packed
// packages with pnpm and Yarn.
//   npm run long -- nightly
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../..');

const ATTW = `for folder in packages/*; do
  grep -q '"private": true' $folder/package.json || npx attw --pack $folder --profile esm-only --quiet || exit 1
done`;

const STEPS: Readonly<Record<string, readonly string[]>> = {
  runtimes: ['npm', 'ci', '--prefix', 'test/runtimes', '--ignore-scripts'],
  // Not `npm ci`: it wants builds for every platform in the lock file, and some are not published for all versions.
  engines: ['npm', 'install', '--no-save', '--prefix', 'examples/engines', '--ignore-scripts'],
  // The image is made of packed packages.
  build: ['npm', 'run', '-s', 'build'],
  // For every change, `scripts/try-packed.ts` compiles an import of every entry.
  'declarations, packed': ['sh', '-c', ATTW],
  tests: ['npx', 'vitest', 'run', '--project', 'nightly'],
  ...Object.fromEntries(
    ['delivery', 'mixed', 'suspends', 'upgrade'].map((profile) => [
      `simulation, ${profile}`,
      ['npm', 'run', '-s', 'simulate', '--', '--seeds', '1000', '--profile', profile],
    ]),
  ),
  races: ['npm', 'run', '-s', 'long', '--', 'race'],
  'chats, from packed packages': ['npm', 'run', '-s', 'long', '--', 'web'],
  'applications, from packed packages': ['npm', 'run', '-s', 'long', '--', 'apps'],
  'packed packages, on every Node': ['env', 'WHOA_NIGHT=1', 'node', 'scripts/try-packed.ts'],
  'package managers': ['npm', 'run', '-s', 'release', '--', '--dry-run'],
};

const results = Object.entries(STEPS).map(([name, [file = '', ...args]]) => {
  console.log(`── ${name}`);
  const started = performance.now();
  const { status } = spawnSync(file, args, { cwd: root, stdio: 'inherit' });
  const seconds = Math.round((performance.now() - started) / 1_000);
  return { name, hasPassed: status === 0, seconds };
});
for (const { name, hasPassed, seconds } of results)
  console.log(`${hasPassed ? 'ok  ' : 'FAIL'} ${name} (${seconds} s)`);
const failed = results.filter(({ hasPassed }) => !hasPassed).length;
console.log(`${results.length - failed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
