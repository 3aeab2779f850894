// The official MCP conformance kit against our server and our client: npm run long -- mcp-conformance [NAME], with NAME only
// scenarios whose name contains it.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startKitServer } from '../campaigns/mcp-conformance.ts';
import { EXPECTED, KITS, SCENARIOS } from '../campaigns/mcp-conformance-plan.ts';

const ROOT = join(import.meta.dirname, '../..');
const CLIENT = join(ROOT, 'test/campaigns/mcp-kit-client.ts');
const CLIENT_COMMAND = `${process.execPath} --conditions=@whoa/source --no-warnings ${CLIENT}`;
const [, , wanted = ''] = process.argv;
const MAX_SCENARIO_MS = 120_000;

interface Check {
  readonly id: string;
  readonly status: string;
  readonly errorMessage?: string;
}

/** Installs a version of the kit outside of our dependencies, once. */
function install(version: string): string {
  const folder = join(ROOT, '.cache/mcp-conformance', version);
  const program = join(folder, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');
  if (existsSync(program)) return program;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true }));
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--save-exact'];
  const kit = `@modelcontextprotocol/conformance@${version}`;
  const { status, stderr } = spawnSync('npm', ['install', ...flags, kit], { cwd: folder, encoding: 'utf8' });
  if (status !== 0) throw new Error(`the kit ${version} did not install: ${stderr}`);
  return program;
}

/** Runs one scenario, and returns its checks. */
async function runScenario(program: string, args: readonly string[]): Promise<readonly Check[]> {
  const folder = mkdtempSync(join(tmpdir(), 'whoa-mcp-kit-'));
  try {
    const options = { stdio: 'ignore' as const, timeout: MAX_SCENARIO_MS };
    await once(spawn(process.execPath, [program, ...args, '-o', folder], options), 'exit');
    const [file] = globSync('**/checks.json', { cwd: folder });
    if (file === undefined) return [{ id: 'no-checks', status: 'FAILURE', errorMessage: 'the kit wrote no checks' }];
    return JSON.parse(readFileSync(join(folder, file), 'utf8')) as Check[];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const counts: Record<string, number> = {};
const failed = new Set<string>();
const surprises: string[] = [];
await using server = await startKitServer();
for (const version of KITS) {
  const program = install(version);
  const scenarios = [
    ...SCENARIOS[version]!.server.map((name) => ['server', '--url', server.url, '--scenario', name]),
    ...SCENARIOS[version]!.client.map((name) => ['client', '--command', CLIENT_COMMAND, '--scenario', name]),
  ];
  for (const args of scenarios) {
    const name = `${version} ${args[0]!} ${args.at(-1)!}`;
    if (!name.includes(wanted)) continue;
    const checks = await runScenario(program, args);
    for (const { id, status, errorMessage } of checks) {
      counts[status] = (counts[status] ?? 0) + 1;
      if (status !== 'FAILURE') continue;
      failed.add(id);
      if (!Object.hasOwn(EXPECTED, id)) surprises.push(`${name}: ${id}: ${errorMessage ?? ''}`);
    }
    const wrong = checks.filter(({ status }) => status === 'FAILURE').map(({ id }) => id);
    console.log(
      `${name}: ${checks.length - wrong.length} of ${checks.length}${wrong.length > 0 ? `; not ${wrong.join(', ')}` : ''}`,
    );
  }
}
const whole = wanted === '' ? Object.keys(EXPECTED) : [];
for (const id of whole) if (!failed.has(id)) surprises.push(`${id} passes; remove it from the plan`);
console.log(JSON.stringify({ counts, expected: EXPECTED, surprises }, undefined, 2));
process.exitCode = surprises.length === 0 ? 0 : 1;
