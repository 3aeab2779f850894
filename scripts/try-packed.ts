// Tries the packages as new users get them: packed, installed into an empty folder with an empty npm cache, on the oldest
// Node, and at night (WHOA_NIGHT) on every supported one. Imports every entry of every package, runs the first program of the start page exactly as written,
// and runs a prompt with the command.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { addLocalPackages } from './local-packages.ts';
import { firstProgram, importAll, PEERS_OF_PAGES, toLocked, withoutPages } from './packed.ts';

const NODES = ['22.19.0', '24.21.0', '26.10.0'];
const CHOSEN = process.env['WHOA_NIGHT'] === undefined ? NODES.slice(0, 1) : NODES;
const root = join(import.meta.dirname, '..');
const work = mkdtempSync(join(tmpdir(), 'whoa-packed-'));

const PAGE_PEERS = PEERS_OF_PAGES.map(toLocked);

const run = (file: string, args: readonly string[], options: { cwd: string; env?: NodeJS.ProcessEnv }): string =>
  execFileSync(file, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'], ...options });

/** Installs, and retries if a mirror's list of versions was older than a package that needs a newer one. */
function npmInstall(cwd: string, packages: readonly string[]): void {
  const args = ['install', '--no-audit', '--no-fund', '--cache', join(work, 'cache'), ...packages];
  try {
    run('npm', args, { cwd });
  } catch {
    run('npm', [...args, '--prefer-online'], { cwd });
  }
}

/** Runs a prompt with the command, with a model that needs no key. */
function tryCommand(cwd: string, env: NodeJS.ProcessEnv): string {
  const whoa = (...args: string[]): string =>
    run(join(root, 'scripts/with-node'), ['node_modules/.bin/whoa', ...args], { cwd, env });
  writeFileSync(join(cwd, 'script.json'), JSON.stringify(SCRIPT));
  const said = whoa('run', '--yes', '--sandbox', 'none', '--json', '--model', 'scripted:script.json', 'Say hello');
  const result = JSON.parse(said.trim().split('\n').at(-1)!) as { status: string; answer: string };
  if (result.status !== 'success') throw new Error(`whoa run ended ${said}`);
  const hello = { jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: 1, clientCapabilities: {} } };
  const from = performance.now();
  const answer = execFileSync(join(root, 'scripts/with-node'), ['node_modules/.bin/whoa', 'acp'], {
    cwd,
    env,
    input: `${JSON.stringify(hello)}\n`,
    encoding: 'utf8',
  });
  const { agentInfo } = (JSON.parse(answer) as { result: { agentInfo: { name: string } } }).result;
  const seconds = ((performance.now() - from) / 1_000).toFixed(1);
  return `whoa ${whoa('--version').trim()} answers '${result.answer}'; to an editor '${agentInfo.name}' in ${seconds} s`;
}

const SCRIPT = [[{ call: 'bash', input: { command: 'echo hello > hello.txt' } }], ['Hello.']];

function install(cwd: string): string {
  const from = performance.now();
  npmInstall(cwd, [toLocked('zod')]);
  const seconds = ((performance.now() - from) / 1_000).toFixed(1);
  const bytes = readdirSync(join(cwd, 'node_modules'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);
  return `installed with an empty cache in ${seconds} s, ${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}

/**
 * Compiles an import of every entry in the strictest mode. Our declarations may have no errors; third-party ones may.
 */
function checkTypes(cwd: string, entries: readonly string[]): void {
  // The kits for tests have peers that applications do not install.
  const imports = entries
    .filter((entry) => !entry.endsWith('/testing'))
    .map((entry, i) => `import * as entry${i} from '${entry}';\nexport { entry${i} };`);
  writeFileSync(join(cwd, 'types.ts'), imports.join('\n'));
  const compilerOptions = {
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: false,
    noEmit: true,
    target: 'es2023',
    lib: ['es2024', 'esnext.disposable', 'dom', 'dom.iterable'],
    module: 'nodenext',
    typeRoots: [join(root, 'node_modules/@types')],
    types: ['node'],
  };
  writeFileSync(join(cwd, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['types.ts'] }));
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  const { stdout } = spawnSync(process.execPath, [tsc, '-p', cwd], { cwd, encoding: 'utf8' });
  const lines = stdout.split('\n').filter((line) => line.includes('error TS'));
  const ours = lines.filter((line) => /^(types\.ts|node_modules\/(@whoa\/[^/]+|whoa)\/dist\/)/.test(line));
  if (ours.length > 0) throw new Error(`With skipLibCheck: false:\n${ours.join('\n')}`);
  console.log(`with skipLibCheck: false no declaration of ours has an error; those of others have ${lines.length}`);
}

try {
  const cwd = join(work, 'empty');
  mkdirSync(cwd);
  const { entries } = addLocalPackages(cwd);
  console.log(install(cwd));
  writeFileSync(join(cwd, 'first.ts'), firstProgram());
  writeFileSync(join(cwd, 'imports.mjs'), importAll(withoutPages(entries)));
  for (const version of CHOSEN) {
    const env = { ...process.env, WHOA_NODE: version, XDG_STATE_HOME: join(work, 'state'), XDG_CONFIG_HOME: work };
    const node = (file: string): string =>
      run(join(root, 'scripts/with-node'), ['node', '--no-warnings', file], { cwd, env });
    node('imports.mjs');
    console.log(`Node ${version}: ${tryCommand(cwd, env)}`);
    console.log(
      `Node ${version}: every entry imports; the first program prints\n${node('first.ts').replace(/^/gm, '  | ')}`,
    );
  }
  npmInstall(cwd, PAGE_PEERS);
  writeFileSync(join(cwd, 'imports.mjs'), importAll(entries));
  for (const version of CHOSEN) {
    const env = { ...process.env, WHOA_NODE: version };
    run(join(root, 'scripts/with-node'), ['node', '--no-warnings', 'imports.mjs'], { cwd, env });
  }
  console.log(`with ${PAGE_PEERS.join(', ')} every entry imports, for pages too`);
  checkTypes(cwd, entries);
} finally {
  rmSync(work, { recursive: true });
}
