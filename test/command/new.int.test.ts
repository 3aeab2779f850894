import { spawnSync } from 'node:child_process';
import { readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createHome, type Home } from './terminal.ts';

const MODULES = join(import.meta.dirname, '../../node_modules');
const TEST = ['--conditions=@whoa/source', '--test', '--test-isolation=none', '--test-reporter=tap'];

function home(files: Record<string, string> = {}): Home {
  const made = createHome(files);
  onTestFinished(() => made[Symbol.dispose]());
  return made;
}

const NAMES = ['fetch_weather', 'x', 'Order-2'];

test('new tools have tests, which pass as written', async () => {
  const own = home();
  const { folder, env } = own;
  for (const name of NAMES) {
    const { status, stdout, stderr } = await own.main(['new', 'tool', name, '--folder', 'tools']);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toContain(`Created tools/${name}.ts\nCreated tools/${name}.test.ts\n`);
  }
  symlinkSync(MODULES, folder.at('node_modules'));
  const args = [...TEST, ...NAMES.map((name) => `tools/${name}.test.ts`)];
  const proof = spawnSync(process.execPath, args, { cwd: folder.path, env, encoding: 'utf8' });
  expect(proof.stdout, proof.stderr).toContain('# fail 0\n');
  expect(proof.stdout).toContain(`# pass ${12 * NAMES.length}\n`);
}, 60_000);

test('a tool that stops hearing its signal makes the written test fail', async () => {
  const own = home();
  const { folder, env } = own;
  await own.main(['new', 'tool', 'deaf']);
  symlinkSync(MODULES, folder.at('node_modules'));
  const written = readFileSync(folder.at('deaf.ts'), 'utf8');
  folder.write('deaf.ts', written.replace('doWork(item, signal)', 'doWork(item, new AbortController().signal)'));
  const proof = spawnSync(process.execPath, [...TEST, '--test-name-pattern=cancelled mid-way', 'deaf.test.ts'], {
    cwd: folder.path,
    env,
    encoding: 'utf8',
  });
  expect(proof.stdout).toMatch(/not ok \d+ - cancelled mid-way/);
}, 60_000);
