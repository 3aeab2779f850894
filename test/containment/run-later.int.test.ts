import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createContainment, findRunLater, runsLater } from '@whoa/tools';
import { afterAll, describe, expect, test } from 'vitest';
import { findGit } from '../../packages/tools/src/sandbox/git-call.ts';
import { guardWorkspace } from '../../packages/tools/src/sandbox/guards.ts';
import { UNASKED as LIST } from '../../packages/tools/src/sandbox/run-later.ts';
import { forChange, isNight } from '../night.ts';
import { createWorkspace, type Workspace } from '../workspace.ts';
import { AFTER, GIT_ATTEMPTS, type GitAttempt } from './git-attempts.ts';
import { as, giveTo, runInside, USERS } from './inside.ts';

const folder = mkdtempSync(join(tmpdir(), `whoa-test-${process.pid}-folder-`));
afterAll(() => rmSync(folder, { recursive: true }));

/** `.cargo/config` is in a folder, next to `.cargo/config.toml`. A separate `.git` would be a broken repository. */
const UNASKED = LIST.filter((name) => name !== '.git');

const IDENTITY = {
  GIT_AUTHOR_NAME: 'Ann',
  GIT_AUTHOR_EMAIL: 'ann@example.com',
  GIT_COMMITTER_NAME: 'Ann',
  GIT_COMMITTER_EMAIL: 'ann@example.com',
};

/** What ordinary users get is proved for every change, what root gets at night. */
const AS = forChange(USERS, (_, index) => index === USERS.length - 1);

/** Runs a script outside, as the user would. */
function runOutside(script: string, where: Workspace, user: string): string {
  const env = {
    ...IDENTITY,
    PATH: process.env['PATH'],
    HOME: where.path,
    OWNED: where.at('OWNED'),
  };
  const [file, ...args] = [...as(user), 'bash', '-c', script];
  const { stdout, stderr } = spawnSync(file, args, { cwd: where.at('ws'), env, encoding: 'utf8' });
  return stdout + stderr;
}

function createRepository(user: string, before = ':'): Workspace {
  const where = createWorkspace({ 'ws/a': 'a\n' });
  giveTo(user, where);
  runOutside('git init -q . && git add a && git commit -qm one', where, user);
  const problems = runOutside(before, where, user);
  if (problems !== '') throw new Error(problems);
  return where;
}

function tryInside(script: string, where: Workspace, user: string): Promise<string> {
  const env = { PATH: '/usr/bin:/bin', OWNED: where.at('OWNED') };
  return runInside(script, { sandbox: { kind: 'workspace', workspace: where.at('ws') }, env, user, folder });
}

describe.each(AS)('as %s', (user) => {
  test('git can be read inside, and a way out outside is seen', async () => {
    using where = createRepository(user);
    expect(await tryInside('git log --format=%s; git status --short; git diff', where, user)).toBe('one\n\n[0]');
    runOutside(`git config core.fsmonitor "touch $OWNED; false"; git status`, where, user);
    expect(existsSync(where.at('OWNED'))).toBe(true);
  });

  test.each(GIT_ATTEMPTS)('a command cannot $name', async ({ before, script, after = AFTER }: GitAttempt) => {
    using where = createRepository(user, before);
    await tryInside(script, where, user);
    const said = runOutside(after, where, user);
    expect(existsSync(where.at('OWNED')), said).toBe(false);
    expect(said).not.toMatch(/fatal|not a git repository/);
  });

  test.runIf(isNight).each(GIT_ATTEMPTS)(
    'a command without a sandbox can $name',
    ({ before, script, after = AFTER }) => {
      using where = createRepository(user, before);
      runOutside(script, where, user);
      const said = runOutside(after, where, user);
      expect(existsSync(where.at('OWNED')), said).toBe(true);
    },
  );

  test('protected files that did not exist leave no empty file behind, and git still works', async () => {
    using where = createRepository(user);
    const before = where.list();
    await tryInside('git status', where, user);
    expect(where.list().filter((name) => !before.includes(name))).toEqual([]);
    expect(runOutside('git status --short', where, user)).toBe('');
  });

  test('a repository that appears is reported, with its settings that start programs', async () => {
    using where = createWorkspace({ 'ws/src/a': 'a\n' });
    giveTo(user, where);
    const since = Date.now();
    const script = `git init -q . && git config core.fsmonitor 'touch $OWNED; false'; git init -q src/deep;
      mkdir -p src/.vscode && echo x > src/.vscode/tasks.json; echo x > package.json; echo x > b`;
    await tryInside(script, where, user);
    expect((await findRunLater(where.at('ws'), since)).toSorted()).toEqual([
      '.git  core.fsmonitor=touch $OWNED; false',
      'package.json',
      'src/.vscode/tasks.json',
      'src/deep/.git',
    ]);
    expect(await findRunLater(where.at('ws'), Date.now() + 1_000)).toEqual([]);
  });

  test('a folder that git takes for a repository is reported too', async () => {
    using where = createRepository(user, 'mkdir docs');
    const since = Date.now();
    const script = `cd docs && mkdir objects refs && echo 'ref: refs/heads/main' > HEAD &&
      printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n\\tworktree = .\\n\\tfsmonitor = "touch $OWNED; false"\\n' > config`;
    await tryInside(script, where, user);
    expect(await findRunLater(where.at('ws'), since)).toEqual(['docs  core.fsmonitor=touch $OWNED; false']);
    runOutside('cd docs && git status', where, user);
    expect(existsSync(where.at('OWNED')), 'git does so').toBe(true);
  });

  test('no entry of the folder keeps the others from being reported', async () => {
    using where = createWorkspace({ 'ws/sub/a': 'a\n', 'ws/broken/.git/config': '[', 'ws/odd/.git/objects': '' });
    giveTo(user, where);
    const since = Date.now();
    const script = `echo 'gitdir: nowhere' > sub/.git; echo x >> broken/.git/config; ln -s nowhere odd/.envrc
      mkdir -p deep/.git/hooks shut/.git && chmod 0 deep/.git/hooks && chmod 311 shut; echo x > Makefile`;
    await tryInside(script, where, user);
    expect((await findRunLater(where.at('ws'), since)).toSorted()).toEqual(
      expect.arrayContaining(['Makefile', 'deep/.git', 'odd/.envrc', 'sub/.git']),
    );
  });

  test('the .git of a linked work tree cannot be changed, and git does not work there', async () => {
    using where = createRepository(user, 'git worktree add -q ../linked -b linked');
    const before = where.read('linked/.git');
    const sandbox = { kind: 'workspace', workspace: where.at('linked') } as const;
    const script = 'echo "gitdir: evil" > .git; mv .git old; rm -f .git; mkdir .git; git status';
    const said = await runInside(script, { sandbox, env: { PATH: '/usr/bin:/bin' }, user, folder });
    expect(said).toContain('not a git repository');
    expect(where.read('linked/.git')).toBe(before);
  });

  test.each([
    ['.git', 'mv .git real && ln -s real .git'],
    ['.idea', 'mkdir real && ln -s real .idea'],
    ['.envrc', 'ln -s nowhere .envrc'],
    ['.yarn/releases', 'mkdir -p .yarn real && ln -s ../real .yarn/releases'],
    ['.cargo', 'mkdir real && ln -s real .cargo'],
  ])('a protected name that is a link (%s) cannot be protected, so there is no sandbox', async (name, script) => {
    using where = createRepository(user, script);
    const fault = `${where.at('ws')}/${name} is a symbolic link, which cannot be protected`;
    await expect(tryInside('true', where, user)).rejects.toThrow(fault);
  });
});

describe.each(AS)('as %s', (user) => {
  test.each(['workspace', 'read-only'] as const)('a socket in the workspace has no daemon (%s)', async (kind) => {
    using where = createWorkspace({ 'ws/a': 'a\n', 'ws/deep/a': '' });
    const names = ['ws/top.sock', 'ws/deep/daemon.sock', 'ws/deep/mine.sock'];
    const daemons = names.map((name) => createServer((client) => client.destroy()).listen(where.at(name)));
    await Promise.all(daemons.map((daemon) => once(daemon, 'listening')));
    for (const name of names) chmodSync(where.at(name), 0o777);
    giveTo(user, where);
    const sandbox = { kind, workspace: where.at('ws'), writable: [where.at('ws/deep/mine.sock')] };
    const ask = (name: string): string =>
      `perl -MIO::Socket::UNIX -e 'my $s = IO::Socket::UNIX->new($ARGV[0]); print $s ? "CONNECTED " : "refused "' ${name};`;
    const script = `${ask('top.sock')} ${ask('deep/daemon.sock')} rm -f top.sock; mv deep/daemon.sock deep/moved.sock; ${ask('deep/moved.sock')} ${ask('deep/mine.sock')}`;
    const said = await runInside(script, { sandbox, env: { PATH: '/usr/bin:/bin' }, user, folder });
    expect(said.match(/refused|CONNECTED/g)).toEqual(['refused', 'refused', 'refused', 'CONNECTED']);
    await Promise.all(daemons.map((daemon) => new Promise((resolve) => daemon.close(resolve))));
    expect(where.list().filter((name) => name.endsWith('.sock'))).toEqual([]);
  });

  test.each(['workspace', 'read-only'] as const)('a hidden folder is empty and stays so (%s)', async (kind) => {
    using where = createWorkspace({ 'ws/a': 'a\n', 'ws/deep/own/secret': 'SECRET' });
    giveTo(user, where);
    const sandbox = { kind, workspace: where.at('ws'), hidden: [where.at('ws/deep/own')] };
    const script = `ls -A deep/own; cat deep/own/*; echo evil > deep/own/config; rm -rf deep/own; mv deep/own moved; mv deep old
      mkdir -p deep/own; echo evil > deep/own/config; mount -t tmpfs none deep; umount deep/own`;
    const said = await runInside(script, { sandbox, env: { PATH: '/usr/bin:/bin' }, user, folder });
    expect(said).not.toContain('SECRET');
    expect(said).toContain('Read-only file system');
    expect(where.read('ws/deep/own/secret')).toBe('SECRET');
    expect(where.list().filter((name) => !/moved|old/.test(name))).toEqual([
      'ws',
      'ws/a',
      'ws/deep',
      'ws/deep/own',
      'ws/deep/own/secret',
    ]);
  });

  test.each(['file', 'folder'])('a command cannot change, move or remove protected paths, as a %s', async (kind) => {
    using where = createWorkspace({ 'ws/a': 'a\n' });
    for (const name of UNASKED) where.write(kind === 'file' ? `ws/${name}` : `ws/${name}/x`, '');
    giveTo(user, where);
    const before = where.list();
    const script = `for name in ${UNASKED.join(' ')}; do
        for path in $name $name/x; do echo evil >> $path; done; touch $name/new; mv $name moved; rm -rf $name; mkdir $name
        above=$(dirname $name); [ $above = . ] || { mv $above moved && mkdir -p $name; }
      done 2>/dev/null; echo b > b`;
    await tryInside(script, where, user);
    // A copy is left where a move failed.
    const after = where.list().filter((name) => !name.startsWith('ws/moved'));
    expect(after).toEqual([...before, 'ws/b'].toSorted());
    const isChanged = (name: string): boolean => where.read(kind === 'file' ? `ws/${name}` : `ws/${name}/x`) !== '';
    expect(UNASKED.filter(isChanged)).toEqual([]);
  });
});

test('the list covers what other sandboxes refuse to write', () => {
  const others =
    `.git/hooks/x .git/config .gitconfig .gitmodules .bashrc .bash_profile .zshrc .zprofile .profile .ripgreprc
    .mcp.json .vscode/x .idea/x .claude/commands/x .claude/agents/x .codex/x .agents/x`.split(/\s+/);
  expect(others.filter((path) => !runsLater(path))).toEqual([]);
  expect(['a.ts', '.gitignore', 'src/git', '.github/x', 'gitconfig'].filter(runsLater)).toEqual([]);
});

test('the number of protected repositories equals the documented one', async () => {
  const names = Array.from({ length: 70 }, (_, index) => `ws/r${index}/.git/config`);
  using where = createWorkspace(Object.fromEntries(names.map((name) => [name, ''])));
  const guards = await guardWorkspace(where.at('ws'), []);
  expect(guards.forCommands.filter((argument) => argument === '--ro-bind-try')).toHaveLength(64);
});

test('a folder that a command made impossible to list is reported', () => {
  using where = createWorkspace({ 'ws/shut/.envrc': 'x' });
  const user = USERS.at(-1)!;
  giveTo(user, where);
  const source = join(import.meta.dirname, '../../packages/tools/src/sandbox/run-later.ts');
  const script = `const { findRunLater } = await import('${source}'); console.log(await findRunLater('.', 0));`;
  const node = `${process.execPath} --conditions=@whoa/source --no-warnings --input-type=module --eval`;
  expect(runOutside(`chmod 311 shut && ${node} "${script}"`, where, user)).toBe("[ 'shut  cannot be listed' ]\n");
  runOutside('chmod 755 shut', where, user);
});

test('a workspace named like installed packages is looked at', async () => {
  using where = createWorkspace({
    'node_modules.bak/ws/Makefile': '',
    'node_modules.bak/ws/node_modules/a/Makefile': '',
  });
  expect(await findRunLater(where.at('node_modules.bak/ws'), 0)).toEqual(['Makefile']);
});

test('a file where the list or git expects a folder is handled', async () => {
  using where = createWorkspace({ 'ws/.yarn': '', 'ws/.git': 'gitdir: nowhere' });
  const workspace = where.at('ws');
  expect((await guardWorkspace(workspace, [])).forCommands).toContain(`${workspace}/.git`);
  await using containment = createContainment({ sandbox: { kind: 'workspace', workspace } });
  expect(findGit('git add a', containment)).toBeUndefined();
});

test('files that users run are reported, and others are not', async () => {
  const reported =
    `package.json src/Makefile justfile pyproject.toml app/build.gradle.kts a.csproj CMakeLists.txt flake.nix
    docker-compose.yml .github/workflows/ci.yml .circleci/config.yml tsconfig.json a.code-workspace .eslintrc .prettierrc.json
    .pylintrc vite.config.ts .env .env.local AGENTS.md .cursorrules`.split(/\s+/);
  const others =
    'README.md src/index.ts config.ts .gitignore .github/CODEOWNERS rc.txt node_modules/a/package.json'.split(' ');
  using where = createWorkspace(Object.fromEntries([...reported, ...others].map((name) => [name, ''])));
  expect((await findRunLater(where.path, 0)).toSorted()).toEqual(reported.toSorted());
});
