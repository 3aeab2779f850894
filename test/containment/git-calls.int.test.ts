// Git commands that run as git itself, with a writable `.git`.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { CancellationToken, createRuntime } from '@whoa/core';
import { createBashTool, createContainment } from '@whoa/tools';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { openGitCall, readGitCommand } from '../../packages/tools/src/sandbox/git-call.ts';
import { forChange, isNight } from '../night.ts';
import { createWorkspace, type Workspace } from '../workspace.ts';
import { as, compiledFolder, giveTo, USERS } from './inside.ts';

const DRIVER = [
  process.execPath,
  '--conditions=@whoa/source',
  '--no-warnings',
  join(import.meta.dirname, 'run-bash.ts'),
];
const GITCONFIG = '[user]\n\tname = Ann B\n\temail = ann@example.com\n[init]\n\tdefaultBranch = main\n';

/** A home folder with a repository in it. */
function createHomeWith(user: string, script = ':'): Workspace {
  const home = createWorkspace({ '.gitconfig': GITCONFIG, '.config/git/ignore': '*.swp\n', 'ws/a': 'a\n' });
  giveTo(user, home);
  runOutside('git init -q . && git add a && git commit -qm one', home, user);
  const problems = runOutside(script, home, user);
  if (problems !== '') throw new Error(problems);
  return home;
}

function spawnIn(argv: readonly string[], home: Workspace, user: string) {
  const [file = '', ...args] = [...as(user), ...argv];
  const path = `${home.at('ws/bin')}:${process.env['PATH']}`;
  const env = { PATH: path, HOME: home.path, TMPDIR: '/tmp', NODE_COMPILE_CACHE: compiledFolder(user) };
  return spawnSync(file, args, { cwd: home.at('ws'), env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

function runOutside(script: string, home: Workspace, user: string): string {
  const { stdout, stderr } = spawnIn(['bash', '-c', script], home, user);
  return stdout + stderr;
}

/** Runs commands with the shell tool, as a user. Returns what the model gets. */
function runTool(commands: readonly string[], home: Workspace, user: string): string[] {
  const { stdout, stderr } = spawnIn([...DRIVER, home.at('ws'), ...commands], home, user);
  if (stderr !== '') throw new Error(stderr);
  const lines = stdout.trim().split('\n');
  return lines.map((line) => (JSON.parse(line) as { content: string }).content);
}

const EVIL = `printf '#!/bin/sh\\ntouch ran; cat; exit 1\\n' > evil; chmod +x evil`;

/** What ordinary users get is proved for every change, what root gets at night. */
const AS = forChange(USERS, (_, index) => index === USERS.length - 1);

/** A program that settings or arguments name. It must not run, because it could write to `.git`. */
const PROGRAMS: readonly { readonly name: string; readonly before: string; readonly command: string }[] = [
  {
    name: 'a hook',
    before: 'printf "#!/bin/sh\\ntouch ran\\n" > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit',
    command: 'git commit -m x --allow-empty',
  },
  {
    name: 'a hook of the work tree',
    before:
      'mkdir hooks; printf "#!/bin/sh\\ntouch ran\\n" > hooks/post-checkout; chmod +x hooks/*; git config core.hooksPath hooks',
    command: 'git checkout -b new',
  },
  { name: 'a file system monitor', before: 'git config core.fsmonitor ./evil', command: 'git add .' },
  {
    name: 'a filter',
    before: 'git config filter.x.clean ./evil; echo "* filter=x" > .gitattributes; echo b > b',
    command: 'git add b',
  },
  { name: 'an editor', before: 'git config core.editor ./evil', command: 'git commit --allow-empty' },
  {
    name: 'a signer',
    before: 'git config commit.gpgSign true; git config gpg.program ./evil',
    command: 'git commit -m x --allow-empty',
  },
  { name: 'a signer of tags', before: 'git config gpg.program ./evil', command: 'git tag -s v1 -m x' },
  {
    name: 'a merge driver',
    before:
      'git checkout -qb o; echo o > a; git commit -qam o; git checkout -q main; echo m > a; git commit -qam m; git config merge.x.driver "./evil"; echo "a merge=x" > .git/info/attributes',
    command: 'git merge o',
  },
  {
    name: 'a merge strategy',
    before:
      'mkdir bin; mv evil bin/git-merge-evil; git checkout -qb o; git commit -q --allow-empty -m o; git checkout -q main; git commit -q --allow-empty -m m',
    command: 'git merge -s evil o',
  },
  {
    name: 'an external diff',
    before: 'git config diff.external ./evil; echo b > a; git stash -q',
    command: 'git stash show -p --ext-diff',
  },
  {
    name: 'included settings',
    before: 'printf "[core]\\n\\tfsmonitor = ./evil\\n" > shared; git config include.path ../shared',
    command: 'git add a',
  },
];

describe.each(AS)('as %s', (user) => {
  test('git commits as the user, ignores what they ignore, and every listed subcommand works', () => {
    using home = createHomeWith(user);
    const said = runTool(
      [
        'echo b > b; echo s > b.swp; mkdir .vscode; echo 1 > .vscode/settings.json',
        'git add -A',
        'git commit -m "Add b!\n\nWith a body."',
        'git switch -c new',
        'git mv b c',
        "git commit -m 'Move b'",
        'git rm c',
        'git restore --staged --worktree .',
        'echo d >> c; rm -r .vscode',
        'git stash',
        'git stash show stash@{0}',
        'git stash pop',
        'git reset --hard HEAD~1',
        'git checkout main',
        'git merge new',
        'git tag v1 -m one',
        'git branch -d new',
      ],
      home,
      user,
    );
    expect(said.filter((text) => /fatal|Exit code|removed/.test(text))).toEqual([]);
    const log = runOutside('git log --format="%an <%ae> %cn %s"; git ls-files; git status --short', home, user);
    expect(log).toBe(
      'Ann B <ann@example.com> Ann B Add b!\nAnn B <ann@example.com> Ann B one\n.vscode/settings.json\na\nb\n',
    );
  });

  test.each(PROGRAMS)('git does not start $name', ({ before, command }) => {
    using home = createHomeWith(user, `${EVIL}; ${before}`);
    runTool([command], home, user);
    expect(existsSync(home.at('ws/ran'))).toBe(false);
  });

  test.runIf(isNight).each(PROGRAMS)('without a sandbox git starts $name', ({ before, command }) => {
    using home = createHomeWith(user, `${EVIL}; ${before}`);
    runOutside(command, home, user);
    expect(existsSync(home.at('ws/ran'))).toBe(true);
  });

  test('files that a required filter should have changed are not added', () => {
    using home = createHomeWith(user, 'git config filter.lfs.clean cat; git config filter.lfs.required true');
    const [, , big, small] = runTool(
      [
        'echo "*.bin filter=lfs" > .gitattributes; echo b > b.bin; echo c > c',
        'git add .gitattributes',
        'git add b.bin',
        'git add c',
      ],
      home,
      user,
    );
    expect(big).toMatch(/clean filter 'lfs' failed/);
    expect(small).toBe('(no output)');
  });

  test('a file cannot be moved to where it runs later, nor written into .git', () => {
    using home = createHomeWith(user, 'mkdir .vscode; echo 1 > .vscode/tasks.json; git add .; git commit -qm two');
    const said = runTool(
      [
        'echo 2 > mine',
        'git add mine',
        'git mv -f mine .vscode/tasks.json',
        'git stash show -p --output=.git/commondir',
        'git mv mine .git/commondir',
      ],
      home,
      user,
    );
    expect(said.slice(2).filter((text) => /Exit code/.test(text))).toHaveLength(3);
    expect(home.read('ws/.vscode/tasks.json')).toBe('1\n');
    expect(existsSync(home.at('ws/.git/commondir'))).toBe(false);
  });
});

test('a git command among other commands fails, and the result explains what to do', () => {
  using home = createHomeWith('root');
  const [result] = runTool(['echo b >> a; git commit -qam two'], home, 'root');
  expect(result).toMatch(/index\.lock': Read-only file system[\s\S]*a plain git command must be the whole command\]$/);
});

test.each([
  ['git add -A', ['add', '-A']],
  [' git commit -m "It works" ', ['commit', '-m', 'It works']],
  ["git commit -m 'a $b `c` \\d'", ['commit', '-m', 'a $b `c` \\d']],
  ['git commit --message="a"\'b\'c', ['commit', '--message=abc']],
  ['git reset HEAD~2', ['reset', 'HEAD~2']],
  ['git stash pop stash@{1}', ['stash', 'pop', 'stash@{1}']],
  ['git switch -c größer', ['switch', '-c', 'größer']],
])('%j is plainly git', (command, args) => expect(readGitCommand(command)).toEqual(args));

test.each([
  'git',
  'git status',
  'git push',
  'git config user.name x',
  'git worktree add x',
  'git submodule update',
  'git -c core.editor=evil commit',
  'git -C other commit',
  '/usr/bin/git commit',
  'GIT_DIR=x git commit',
  'git commit -m "$(date)"',
  'git commit -m "`date`"',
  'git commit -m x; evil',
  'git commit -m x && evil',
  'git commit -m x | evil',
  'git commit -m x > file',
  'git commit -m x &',
  'git commit -m x\nevil',
  'git add *.ts',
  'git add ~/x',
  'git add A=~/x',
  'git add {a,b}',
  'git add a\\ b',
  'git add "a',
  "git add 'a",
  'git add a # b',
  'git commit -S -m x',
  'git commit --gpg-sign -m x',
  'git stash show --output=x',
  'git checkout --recurse main',
  'git mv a .vscode/tasks.json',
  "git mv a '.husky/pre-commit'",
])('%j is for a shell', (command) => expect(readGitCommand(command)).toBeUndefined());

test('git gets the words that a shell would give it', () => {
  const part = fc.oneof(
    fc.string({ maxLength: 4 }),
    fc.constantFrom("'", '"', '$x', '~', '{', '}', '@{0}', '*', '\\', '!', '#', '=', ' ', '\t', '\n', ';', '&', 'ä'),
  );
  const words = fc.array(part, { maxLength: 8 }).map((parts) => parts.join('').replaceAll('\0', ''));
  fc.assert(
    fc.property(words, (text) => {
      const args = readGitCommand(`git add ${text}`);
      if (args === undefined) return;
      const script = `git() { printf '%s\\0' "$@"; }; cd /; git add ${text}`;
      const { stdout } = spawnSync('/bin/bash', ['-c', script], { env: { HOME: '/nowhere' }, encoding: 'utf8' });
      expect(stdout.split('\0').slice(0, -1)).toEqual(args);
    }),
    { numRuns: isNight ? 2_000 : 200 },
  );
});

test('files that appear in .git and make git run programs are removed, and the result reports them', async () => {
  using home = createHomeWith('root');
  await using containment = createContainment({ sandbox: { kind: 'workspace', workspace: home.at('ws') } });
  const call = (await openGitCall('git add a', containment))!;
  const config = home.read('ws/.git/config');
  for (const name of ['commondir', 'config.worktree', 'modules/x/config', 'objects/info/alternates'])
    home.write(`ws/.git/${name}`, 'x');
  home.write('ws/.git/config', `${config}[core]\n\tfsmonitor = evil\n`);
  const removed = ['config.worktree', 'commondir', 'modules', 'objects/info/alternates', 'config'].map(
    (name) => `.git/${name}`,
  );
  expect(call.settle()).toEqual(removed);
  expect(call.settle()).toEqual([]);
  expect(home.read('ws/.git/config')).toBe(config);
  expect(home.list().filter((name) => /commondir|worktree|modules|alternates/.test(name))).toEqual([]);
});

test('the question shows which git runs and which paths it may write', async () => {
  using home = createHomeWith('root');
  await using containment = createContainment({ sandbox: { kind: 'workspace', workspace: home.at('ws') } });
  const bash = createBashTool({ containment, cwd: home.at('ws') });
  const { signal } = new AbortController();
  const sandbox = 'workspace, where /usr/bin/git may write to .git';
  expect(await bash.preview!({ command: 'git commit -m x' }, { signal })).toEqual({ cwd: home.at('ws'), sandbox });
  expect(await bash.preview!({ command: 'git commit -m x; ls' }, { signal })).toMatchObject({ sandbox: 'workspace' });
});

test('a cancelled git command leaves nothing behind, whether it had started or not', async () => {
  using home = createHomeWith('root');
  using token = new CancellationToken();
  await using containment = createContainment({ sandbox: { kind: 'workspace', workspace: home.at('ws') } });
  const runtime = createRuntime({ tools: [createBashTool({ containment, cwd: home.at('ws') })] });
  const running = runtime.execute([{ id: '1', tool: 'bash', input: { command: 'git add a' } }], { token });
  token.cancel({ kind: 'user' }, { mode: 'now' });
  await running.catch(() => {});
  expect(readdirSync(containment.folder()).filter((name) => name.startsWith('git-'))).toEqual([]);
});
