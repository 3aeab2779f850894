import { spawnSync } from 'node:child_process';
import { readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createHome, type Home } from './terminal.ts';

const MODULES = join(import.meta.dirname, '../../node_modules');

function home(files: Record<string, string> = {}): Home {
  const made = createHome(files);
  onTestFinished(() => made[Symbol.dispose]());
  return made;
}

test.each(['fetch_weather', 'x', 'Order-2'])(
  'a new tool %s has a test, which passes as written',
  (name) => {
    const own = home();
    const { folder, env } = own;
    const { status, stdout, stderr } = own.whoa(['new', 'tool', name, '--folder', 'tools']);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toContain(`Created tools/${name}.ts\nCreated tools/${name}.test.ts\n`);
    symlinkSync(MODULES, folder.at('node_modules'));
    const args = ['--conditions=@whoa/source', '--test', '--test-reporter=tap', `tools/${name}.test.ts`];
    const proof = spawnSync(process.execPath, args, { cwd: folder.path, env, encoding: 'utf8' });
    expect(proof.stdout, proof.stderr).toContain('# fail 0\n');
    expect(proof.stdout).toContain('# pass 12\n');
  },
  60_000,
);

test('a tool that stops hearing its signal makes the written test fail', () => {
  const own = home();
  const { folder, env } = own;
  own.whoa(['new', 'tool', 'deaf']);
  symlinkSync(MODULES, folder.at('node_modules'));
  const written = readFileSync(folder.at('deaf.ts'), 'utf8');
  folder.write('deaf.ts', written.replace('doWork(item, signal)', 'doWork(item, new AbortController().signal)'));
  const args = ['--conditions=@whoa/source', '--test', '--test-reporter=tap', 'deaf.test.ts'];
  const proof = spawnSync(process.execPath, args, { cwd: folder.path, env, encoding: 'utf8' });
  expect(proof.stdout).toMatch(/not ok \d+ - cancelled mid-way/);
}, 60_000);

test('nothing is overwritten, neither the tool nor its test', () => {
  for (const mine of ['fetch.ts', 'fetch.test.ts']) {
    const own = home({ [mine]: 'mine' });
    const { folder } = own;
    const { status, stderr } = own.whoa(['new', 'tool', 'fetch']);
    expect(status).toBe(2);
    expect(stderr).toMatch(/^whoa new: .*fetch(\.test)?\.ts already exists; choose another name or --folder\n$/);
    expect(folder.read(mine)).toBe('mine');
    expect(folder.list().filter((name) => name.startsWith('fetch'))).toEqual([mine]);
  }
});

test.each<[string[], RegExp]>([
  [['new'], /^whoa new: use 'whoa new tool NAME'\n$/],
  [['new', 'agent', 'x'], /^whoa new: cannot create 'agent'; use 'whoa new tool NAME'\n$/],
  [['new', 'tool'], /^whoa new: missing the name of the tool; for example: 'whoa new tool fetch_page'\n$/],
  [['new', 'tool', 'fetch page'], /^whoa new: 'fetch page' is not .*; try 'fetch_page'\n$/],
  [['new', 'tool', '../../etc/passwd'], /; try 'etc_passwd'\n$/],
  [['new', 'tool', '1st'], /; try 'st'\n$/],
  [['new', 'tool', 'x_'], /; try 'x'\n$/],
  [['new', 'tool', 'Über'], /; try 'uber'\n$/],
  [['new', 'tool', '…'], /ending with a letter or digit\n$/],
  [['new', 'tool', 'a', 'b'], /^whoa new: unexpected argument 'b'/],
])('%j is refused in words that help', (args, words) => {
  const own = home();
  const { folder } = own;
  const before = folder.list();
  const { status, stderr } = own.whoa(args);
  expect(stderr).toMatch(words);
  expect(status).toBe(2);
  // The command keeps what it compiled of itself; nothing else is written.
  expect(folder.list().filter((file) => !file.startsWith('.cache'))).toEqual(before);
});
