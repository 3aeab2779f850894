// All static checks: types first, then format, lint, layers, rules, manifests, API reports and dead code, at the same time.
import { spawn } from 'node:child_process';
import { delimiter, join } from 'node:path';

const root = join(import.meta.dirname, '..');
const env = {
  ...process.env,
  NO_COLOR: '1',
  PATH: `${join(root, 'node_modules/.bin')}${delimiter}${process.env['PATH']}`,
};

interface Check {
  readonly name: string;
  readonly command: readonly string[];
  /** A tool that checked no file has not passed. */
  readonly accepts?: (output: string) => boolean;
}

/**
 * First, and alone: it builds, and the linter reads the build. Otherwise the linter would check new code against an old
 * build.
 */
const types: Check = { name: 'types', command: ['tsc', '-b'] };
const rules: Check = { name: 'rules in the build', command: ['node', 'scripts/inline-rules.ts'] };

const checks: readonly Check[] = [
  { name: 'format', command: ['biome', 'ci', '--colors=off', '.'] },
  { name: 'lint', command: ['oxlint', '--type-aware', '--deny-warnings'] },
  {
    name: 'layers',
    command: ['depcruise', 'packages', '--include-only', '^packages/[^/]+/src'],
    accepts: (output) => !output.includes('(0 modules'),
  },
  { name: 'sql', command: ['node', 'scripts/lint-sql.ts'] },
  { name: 'rules', command: ['node', '--conditions=@whoa/source', '--no-warnings', 'scripts/rules.ts'] },
  { name: 'manifests', command: ['node', 'scripts/manifests.ts'] },
  { name: 'names in pages', command: ['node', 'scripts/doc-names.ts'] },
  { name: 'error reference', command: ['node', 'scripts/errors.ts'] },
  {
    name: 'command reference',
    command: ['node', '--conditions=@whoa/source', '--no-warnings', 'scripts/cli-page.ts'],
  },
  { name: 'api', command: ['node', 'scripts/api-report.ts'] },
  { name: 'dead code', command: ['knip', '--no-progress'] },
];

async function run({ name, command, accepts }: Check): Promise<boolean> {
  const started = performance.now();
  const [file = '', ...args] = command;
  const child = spawn(file, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
  const passed = code === 0 && (accepts?.(output) ?? true);
  console.log(`${passed ? 'ok  ' : 'FAIL'} ${name} (${((performance.now() - started) / 1000).toFixed(1)} s)`);
  if (!passed) console.log(output);
  return passed;
}

const passed = [await run(types), await run(rules), ...(await Promise.all(checks.map(run)))];
process.exitCode = passed.every(Boolean) ? 0 : 1;
