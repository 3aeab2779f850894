// Installs the applications of examples/apps from packed packages into empty folders, and runs their suites against them.
//   npm run build && npm run long -- apps [booking-bot | shop-chat]
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { addLocalPackages } from '../../scripts/local-packages.ts';

const root = join(import.meta.dirname, '../..');
const examples = join(root, 'examples/apps');
const work = mkdtempSync(join(tmpdir(), 'whoa-apps-'));
const named = process.argv.slice(2);

interface Manifest {
  dependencies: Record<string, string>;
}

/** Copies folders into one, and installs its dependencies: our packages from files, others from the registry. */
function install(name: string, sources: readonly string[], more: Readonly<Record<string, string>> = {}): string {
  const cwd = join(work, name);
  for (const source of sources) cpSync(join(examples, source), cwd, { recursive: true });
  const file = join(cwd, 'package.json');
  const manifest = JSON.parse(readFileSync(file, 'utf8')) as Manifest;
  Object.assign(manifest.dependencies, more);
  writeFileSync(file, JSON.stringify(manifest));
  const isOurs = Object.values(manifest.dependencies).some((from) => from.startsWith('file:whoa/'));
  if (isOurs) addLocalPackages(cwd);
  execFileSync('npm', ['install', '--no-audit', '--no-fund'], { cwd, stdio: 'inherit' });
  return cwd;
}

/** Runs a suite. Returns whether it has passed. */
function passes(project: string, suite: string, env: Readonly<Record<string, string>>): boolean {
  const args = ['vitest', 'run', '--project', project, `test/apps/${suite}`, '--reporter', 'verbose'];
  return spawnSync('npx', args, { cwd: root, env: { ...process.env, ...env }, stdio: 'inherit' }).status === 0;
}

const APPS: Readonly<Record<string, () => boolean>> = {
  'booking-bot'() {
    const cwd = install('booking-bot', ['booking-bot']);
    return passes('integration', 'booking-bot', { BOOKING_BOT: join(cwd, 'main.ts') });
  },
  'shop-chat'() {
    for (const [name, more] of [['before', {}] as const, ['after', { pg: '^8.23.1' }] as const]) {
      const cwd = install(name, ['shop-chat/shared', `shop-chat/${name}`], more);
      const env = { ...process.env, NEXT_TELEMETRY_DISABLED: '1', DATABASE: join(work, `${name}.db`) };
      execFileSync('npm', ['run', 'build'], { cwd, env, stdio: 'inherit' });
    }
    return passes('unit', 'shop-chat', {}) && passes('nightly', 'shop-', { SHOP_CHAT: work });
  },
};

try {
  const results = Object.entries(APPS)
    .filter(([name]) => named.length === 0 || named.includes(name))
    .map(([name, run]) => ({ name, hasPassed: run() }));
  for (const { name, hasPassed } of results) console.log(`${hasPassed ? 'ok  ' : 'FAIL'} ${name}`);
  process.exitCode = results.every(({ hasPassed }) => hasPassed) ? 0 : 1;
} finally {
  rmSync(work, { recursive: true });
}
