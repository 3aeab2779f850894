// Tries the packages as a stranger gets them: packed, installed into an empty folder with an empty npm cache, on every
// supported Node. There every entry of every package is imported, the first program of the start page is run exactly as it is
// written, and the command runs a prompt.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FOR_PAGES, importAll, pack } from './packed.ts';

const NODES = ['22.19.0', '24.21.0', '26.10.0'];
const root = join(import.meta.dirname, '..');
const work = mkdtempSync(join(tmpdir(), 'whoa-packed-'));

/** What the entry for pages needs, and nobody else should have to install. */
const PEERS_OF_PAGES = ['ai@7', '@ai-sdk/react@4', 'react@19'];

const run = (file: string, args: readonly string[], options: { cwd: string; env?: NodeJS.ProcessEnv }): string =>
  execFileSync(file, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'], ...options });

/** The first program of the start page, as a new user would paste it. */
function firstProgram(): string {
  const program = /```ts run\n([\s\S]*?)```/.exec(readFileSync(join(root, 'docs/start.md'), 'utf8'))?.[1];
  if (program === undefined) throw new Error('docs/start.md has no program');
  return program;
}

/** What the command says to a prompt, with a model that needs no key. */
function tryCommand(cwd: string, env: NodeJS.ProcessEnv): string {
  const whoa = (...args: string[]): string =>
    run(join(root, 'scripts/with-node'), ['node_modules/.bin/whoa', ...args], { cwd, env });
  writeFileSync(join(cwd, 'script.json'), JSON.stringify(SCRIPT));
  const said = whoa('run', '--yes', '--sandbox', 'none', '--json', '--model', 'scripted:script.json', 'Say hello');
  const result = JSON.parse(said.trim().split('\n').at(-1)!) as { status: string; answer: string };
  if (result.status !== 'success') throw new Error(`whoa run ended ${said}`);
  const hello = { jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: 1, clientCapabilities: {} } };
  const from = performance.now();
  const answer = execFileSync(join(root, 'scripts/with-node'), ['npx', '--no-install', 'whoa', 'acp'], {
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

function install(cwd: string, tarballs: readonly string[]): string {
  const from = performance.now();
  const cache = join(work, 'cache');
  run('npm', ['install', '--no-audit', '--no-fund', '--cache', cache, ...tarballs, 'zod@4'], { cwd });
  const seconds = ((performance.now() - from) / 1_000).toFixed(1);
  const bytes = readdirSync(join(cwd, 'node_modules'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);
  return `installed with an empty cache in ${seconds} s, ${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}

try {
  const { tarballs, entries } = pack(work);
  const cwd = join(work, 'empty');
  mkdirSync(cwd);
  writeFileSync(join(cwd, 'package.json'), '{ "private": true, "type": "module" }');
  console.log(install(cwd, [...tarballs.values()]));
  writeFileSync(join(cwd, 'first.ts'), firstProgram());
  writeFileSync(join(cwd, 'imports.mjs'), importAll(entries.filter((entry) => entry !== FOR_PAGES)));
  for (const version of NODES) {
    const env = { ...process.env, WHOA_NODE: version, XDG_STATE_HOME: join(work, 'state'), XDG_CONFIG_HOME: work };
    const node = (file: string): string =>
      run(join(root, 'scripts/with-node'), ['node', '--no-warnings', file], { cwd, env });
    node('imports.mjs');
    console.log(`Node ${version}: ${tryCommand(cwd, env)}`);
    console.log(
      `Node ${version}: every entry imports; the first program prints\n${node('first.ts').replace(/^/gm, '  | ')}`,
    );
  }
  run('npm', ['install', '--no-audit', '--no-fund', ...PEERS_OF_PAGES], { cwd });
  writeFileSync(join(cwd, 'imports.mjs'), importAll(entries));
  for (const version of NODES) {
    const env = { ...process.env, WHOA_NODE: version };
    run(join(root, 'scripts/with-node'), ['node', '--no-warnings', 'imports.mjs'], { cwd, env });
  }
  console.log(`with ${PEERS_OF_PAGES.join(', ')} every entry imports, for pages too`);
} finally {
  rmSync(work, { recursive: true });
}
