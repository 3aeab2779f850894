// Runs a recipe for people who keep their framework: node scripts/recipe.ts NAME. The framework is installed on demand
// into a cache folder and is never one of our dependencies; if it does not install, the recipe is skipped with a
// message.
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const FRAMEWORKS: Readonly<Record<string, readonly string[]>> = {
  langgraph: [
    '@langchain/core@1.2.13',
    '@langchain/langgraph@1.4.18',
    '@langchain/openai@1.6.0',
    'langchain@1.5.14',
    'zod@4.6.7',
  ],
  mastra: ['@ai-sdk/openai@4.0.114', '@mastra/core@1.71.0', '@mastra/memory@1.31.0', 'zod@4.6.7'],
};

const root = join(import.meta.dirname, '..');
const [name = ''] = process.argv.slice(2);
const packages = FRAMEWORKS[name];
if (packages === undefined) {
  console.error(`recipe: name one of ${Object.keys(FRAMEWORKS).join(', ')}`);
  process.exit(2);
}

const folder = join(process.env['WHOA_RECIPES'] ?? join(root, '.cache/recipes'), name);
const obstacle = install(folder, packages);
if (obstacle === undefined) process.exitCode = run(folder);
else console.log(`skipped: ${packages.join(' ')} did not install: ${obstacle}`);

/** Installs once per list of packages. Returns why it could not. */
function install(into: string, wanted: readonly string[]): string | undefined {
  const mark = join(into, `installed-${wanted.join('+').replaceAll('/', '_')}`);
  if (existsSync(mark)) return undefined;
  rmSync(into, { recursive: true, force: true });
  mkdirSync(into, { recursive: true });
  writeFileSync(join(into, 'package.json'), JSON.stringify({ private: true, type: 'module' }));
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline', '--fetch-retries=0'];
  const npm = spawnSync('npm', ['install', ...flags, ...wanted], { cwd: into, encoding: 'utf8', timeout: 240_000 });
  if (npm.status !== 0) return npm.error?.message ?? npm.stderr.trim().split('\n').at(0) ?? 'npm failed';
  mkdirSync(join(into, 'node_modules/@whoa'));
  writeFileSync(mark, '');
  return undefined;
}

function run(where: string): number {
  for (const own of ['core', 'ai-sdk']) {
    const link = join(where, 'node_modules/@whoa', own);
    rmSync(link, { force: true });
    symlinkSync(join(root, 'packages', own), link);
  }
  copyFileSync(join(root, 'examples/recipes', `${name}.mjs`), join(where, `${name}.mjs`));
  const args = ['--conditions=@whoa/source', `${name}.mjs`];
  return spawnSync(process.execPath, args, { cwd: where, stdio: 'inherit', timeout: 60_000 }).status ?? 1;
}
