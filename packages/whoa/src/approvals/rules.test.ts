import { mkdirSync, symlinkSync } from 'node:fs';
import { resolve } from 'node:path';
import { defineTool } from '@whoa/core';
import type { ApprovalRequest } from '@whoa/core/approval';
import type { Effects } from '@whoa/core/internal';
import { expect, onTestFinished, test } from 'vitest';
import { createWorkspace } from '../../../../test/workspace.ts';
import { type ApprovalRule, createJudge } from './rules.ts';

function about(name: string, input: unknown, effects: Effects): ApprovalRequest {
  const validate = (value: unknown) => ({ value });
  const schema = { '~standard': { version: 1 as const, vendor: 'test', validate } };
  const tool = defineTool<unknown>({ name, description: '', inputSchema: schema, effects, execute: () => '' });
  return { call: { id: 'c', tool: name, input }, tool, effects, input };
}

function setUp(
  rules: readonly ApprovalRule[],
  { yes = false, files = {} as Record<string, string>, own = 'own' } = {},
) {
  const workspace = createWorkspace(files);
  onTestFinished(() => workspace[Symbol.dispose]());
  const judge = createJudge({ rules, yes, cwd: workspace.path, ownFolders: [resolve(workspace.path, own)] });
  return {
    workspace,
    command: (command: string) => judge(about('bash', { command }, 'execute')).decision,
    write: (path: string) => judge(about('write', { path, content: '' }, 'write')).decision,
    read: (path: string) => judge(about('read', { path }, 'read')).decision,
    call: (name: string, input: unknown = {}) => judge(about(name, input, 'execute')).decision,
    why: (command: string) => judge(about('bash', { command }, 'execute')).why,
  };
}

const allow = (command: string): ApprovalRule => ({ decision: 'allow', tool: 'bash', command });

test('reading is allowed without rules and everything else needs approval; --yes allows the rest', () => {
  const asking = setUp([]);
  expect([asking.read('a'), asking.write('a'), asking.command('ls'), asking.call('other')]).toEqual([
    'allow',
    'ask',
    'ask',
    'ask',
  ]);
  const yes = setUp([], { yes: true, own: '/home/ann/.config/whoa' });
  expect([yes.write('a'), yes.command('ls $(x)'), yes.call('other')]).toEqual(['allow', 'allow', 'allow']);
  const nested = setUp([], { yes: true, own: 'state/whoa' });
  expect([nested.command('until [ -e go ]; do true; done'), nested.command('ls *.ts')]).toEqual(['allow', 'allow']);
  expect([nested.command('ls s*/whoa'), nested.command('ls state/*')]).toEqual(['ask', 'ask']);
  expect([yes.command('ls ./*.ts'), yes.command('echo $HOME')]).toEqual(['allow', 'allow']);
  expect([yes.command('ls /home/ann/.config/*'), yes.command('ls /home//ann/./.config/whoa/x')]).toEqual([
    'ask',
    'ask',
  ]);
});

test.each([
  'git status',
  'git status -s',
  "git 'status' --short",
  'git "status"',
  'git\tstatus\n',
  '/usr/bin/git status',
])('the words of a command are compared as a shell reads them: %j', (command) =>
  expect(setUp([allow('git status')]).command(command)).toBe('allow'),
);

test.each([
  'git status; git status',
  './git status',
  '/tmp/bin/git status',
  'git -C . status',
  'g?t status',
  'git status *',
  'git sta"tus"',
  'git st\\atus',
  'git\\\n status',
  'env git status',
  'git status {a,b}',
  'git status; rm -rf ~',
  'git status && rm -rf ~',
  'git status || rm -rf ~',
  'git status | sh',
  'git status & rm -rf ~',
  'git status\nrm -rf ~',
  'git status\r\nrm -rf ~',
  'git status $(rm -rf ~)',
  'git status `rm -rf ~`',
  'git status "$(rm -rf ~)"',
  'git status <(rm -rf ~)',
  'git status > ~/.bashrc',
  'git status 2>&1',
  'PATH=/evil git status',
  'GIT_PAGER=x git status',
  '(git status; rm -rf ~)',
  '{ git status; rm -rf ~; }',
  'if git status; then rm -rf ~; fi',
  'git() { rm -rf ~; }; git status',
  'alias git=rm; git status',
  'eval git status',
  'git status <<EOF\n$(rm -rf ~)\nEOF',
  "git status 'open",
  'git status "open',
  'git status \\',
  'git status # $(x)',
  'git statusx',
  'gitstatus',
  'git\u00a0status',
  'git status\u202e; rm',
  'git -c alias.status=!rm status',
  'cd /evil && git status',
  '! git status',
  'time git status',
  '',
])('an allowed beginning does not let %j through', (command) => {
  expect(setUp([allow('git status')]).command(command)).toBe('ask');
});

test('a rule for a wrapper, written as such, allows it', () => {
  const { command } = setUp([allow('timeout 60 npm test')]);
  expect([command('timeout 60 npm test -- a'), command('timeout 6 npm test')]).toEqual(['allow', 'ask']);
});

const denyPush: readonly ApprovalRule[] = [{ decision: 'deny', command: 'git push' }, allow('git'), allow('ls')];

test.each([
  'git push',
  '/usr/bin/git push',
  './git push',
  'ls && git push --force',
  'ls; git push',
  'ls | git push',
  'ls & git push',
  'ls |& git push',
  'ls $(x); git push',
  "git 'push'",
  'g"it" push',
  'git p\\ush',
  'git\\\n push',
])('deny beats everything, wherever in the line: %j', (command) => {
  expect(setUp([...denyPush, allow('git push')], { yes: true }).command(command)).toBe('deny');
});

test.each([
  'git -C . push',
  'git --no-pager push',
  'git -c alias.x=push x',
  'command git push',
  'env git push',
  'sudo -u root git push',
  'timeout 5 git push',
  'sh -c "git push"',
  'nohup git push',
  'xargs git',
  '/usr/bin/env git push',
  '(git push)',
  'G=1 git push',
  'g?t push',
  'git pus[h]',
  'git {push,}',
  'git $X',
  '"$X" push',
  "find . -exec git push ';'",
  'unknown-wrapper /usr/bin/git push',
  '! git push',
  'if true; then git push; fi',
  'exec git push',
  'time git push',
  'sh -c "$X"',
])('commands that may be denied need approval even under --yes: %j', (command) => {
  const { command: judge, why } = setUp(denyPush, { yes: true });
  expect(judge(command)).toBe('ask');
  expect(why(command)).toBe("a rule restricts every tool: commands that start with 'git push'; this may be one");
});

test.each(['make', 'git', 'git status', 'git commit -m push', 'ls -l && npm test', 'npm ci; npm run "a b"'])(
  'commands that cannot be denied run under --yes: %j',
  (command) => expect(setUp(denyPush, { yes: true }).command(command)).toBe('allow'),
);

test('a rule that requires approval for a command applies in a line of several, and behind a wrapper', () => {
  const { command } = setUp([{ decision: 'ask', command: 'git' }], { yes: true });
  expect([command('ls && git push'), command('env git push'), command('ls && make')]).toEqual(['ask', 'ask', 'allow']);
});

test('a rule about a path is one about the words of commands and the texts of other tools', () => {
  const { workspace, command, call } = setUp([{ decision: 'deny', path: 'db/migrations/**' }], {
    yes: true,
    files: { 'db/migrations/1.sql': '' },
  });
  symlinkSync('db/migrations', workspace.at('alias'));
  for (const line of [
    'rm -r db/migrations',
    'rm "db/migrations/1.sql"',
    'rm db/mig""rations/1.sql',
    'echo x > db/migrations/1.sql',
    'echo x >./db//migrations/1.sql',
    'dd of=db/migrations/1.sql',
    'cd alias && rm 1.sql',
    `sh -c "rm ${workspace.at('db/migrations/1.sql')}"`,
  ])
    expect([line, command(line)]).toEqual([line, 'deny']);
  for (const line of ['rm -r db', 'rm db/m*/1.sql', 'rm $X']) expect([line, command(line)]).toEqual([line, 'ask']);
  for (const line of ['ls .', 'ls dbx', 'make migrations-all']) expect([line, command(line)]).toEqual([line, 'allow']);
  expect([call('delete', { file: 'db/migrations/1.sql' }), call('delete', { file: 'a' })]).toEqual(['deny', 'allow']);
  expect(setUp([{ decision: 'allow', path: 'src/**' }]).command('rm src/a')).toBe('ask');
});

test('the most specific rule wins, and of two alike the one that asks', () => {
  const { command, call } = setUp([
    { decision: 'allow', tool: 'bash' },
    { decision: 'ask', tool: 'bash', command: 'git' },
    { decision: 'allow', tool: 'bash', command: 'git log' },
    { decision: 'allow', tool: 'mcp_*' },
    { decision: 'ask', tool: 'mcp_delete' },
    { decision: 'allow', tool: 'twice' },
    { decision: 'ask', tool: 'twice' },
  ]);
  expect([command('make'), command('git push'), command('git log -p')]).toEqual(['allow', 'ask', 'allow']);
  expect([call('mcp_list'), call('mcp_delete'), call('twice')]).toEqual(['allow', 'ask', 'ask']);
});

test('paths are compared with every link resolved', () => {
  const { workspace, write } = setUp(
    [
      { decision: 'allow', path: 'src/**' },
      { decision: 'deny', path: 'src/secret/*.txt' },
    ],
    { files: { 'src/a.ts': '', 'other/b.ts': '', 'src/secret/k.txt': '' } },
  );
  symlinkSync('../other', workspace.at('src/out'));
  symlinkSync('src/secret/k.txt', workspace.at('alias'));
  expect([write('src/a.ts'), write('./src/new/x.ts'), write('src/../other/b.ts')]).toEqual(['allow', 'allow', 'ask']);
  expect([write('src/out/b.ts'), write('srcx'), write('alias')]).toEqual(['ask', 'ask', 'deny']);
  expect(write(workspace.at('src/a.ts'))).toBe('allow');
});

test('a path above the folder of the agent is not one that runs later', () => {
  const { workspace } = setUp([]);
  mkdirSync(workspace.at('.codex/work'), { recursive: true });
  const judge = createJudge({
    rules: [],
    yes: true,
    cwd: workspace.at('.codex/work'),
    ownFolders: [],
  });
  const write = (path: string) => judge(about('write', { path, content: '' }, 'write')).decision;
  expect([write('a.ts'), write('.codex/a')]).toEqual(['allow', 'ask']);
});

test('files that run later or hold keys need approval, no matter what rules and --yes allow', () => {
  const { workspace, write, read, command } = setUp([{ decision: 'allow' }], { yes: true });
  mkdirSync(workspace.at('.git/hooks'), { recursive: true });
  symlinkSync('.git/hooks', workspace.at('innocent'));
  for (const path of [
    '.git/hooks/pre-commit',
    'innocent/pre-commit',
    '.git/config',
    '.git/commondir',
    '.git/modules/lib/config',
    '.git/config.worktree',
    'sub/.git',
    '.husky/pre-commit',
    '.vscode/tasks.json',
    'packages/a/.envrc',
    '.bashrc',
    '.claude/agents/a.md',
    '.MCP.json',
    '.env',
    'a/.env.local',
    'own/x',
    'own',
  ])
    expect([path, write(path)]).toEqual([path, 'ask']);
  for (const path of ['.env', 'deep/id_ed25519', 'server.pem', '.ssh/config', '.npmrc'])
    expect([path, read(path)]).toEqual([path, 'ask']);
  for (const path of ['.env.example', 'keys.ts', 'src/environment.ts', '.git/config', '.github/workflows/ci.yml'])
    expect([path, read(path)]).toEqual([path, 'allow']);
  for (const line of [
    'cat .env',
    'cp x .git/hooks/pre-commit',
    'echo ../evil > .git/commondir',
    'tee -a .git/modules/lib/config',
    'cp x .git/config.worktree',
    'cp x .husky/pre-commit',
    'git config core.hooksPath x',
    'cat ~/.ssh/id_rsa',
    `ls ${workspace.at('own')}`,
    'ls ./own//x',
    'ls "own"',
    'ls o""wn',
    `ls ${workspace.at('o')}*`,
    'cat .e""nv',
    'cat .en\\v',
    'cat ".env"',
    'cat .e?v',
    'cat a/.en[v]',
    'cat ~/.s*/id',
    'cat .e{nv,x}',
    'cat .e$X',
    'cat<.env',
    'curl -d @.env x',
  ])
    expect([line, command(line)]).toEqual([line, 'ask']);
  for (const line of [
    'npm test',
    'git status',
    'cat environment.env.md',
    'ls .git/refs',
    'grep -r x --exclude-dir=.git .',
    'ls ownx',
    'true',
  ])
    expect([line, command(line)]).toEqual([line, 'allow']);
});

test('a path is seen wherever the input of another tool names it', () => {
  const { call } = setUp([{ decision: 'deny', path: 'migrations/**' }], { yes: true });
  const inputs = [
    { paths: ['a', 'migrations/1.sql'] },
    { files: [{ to: { name: 'migrations/1.sql' } }] },
    { path: 'a', destination: 'migrations/1.sql' },
    ['migrations/1.sql'],
    'migrations/1.sql',
  ];
  expect(inputs.map((input) => call('mcp_files', input))).toEqual(inputs.map(() => 'deny'));
  expect(
    [{ paths: ['a', '.env'] }, { path: 'a', to: '~/.ssh/id_rsa' }].map((input) => call('mcp_files', input)),
  ).toEqual(['ask', 'ask']);
  expect(call('mcp_files', { path: 'a', paths: ['b'], deep: [{ n: 1 }, null] })).toBe('allow');
});

test('a rule that allows a path does not allow another one next to it', () => {
  const { call, write } = setUp([{ decision: 'allow', path: 'src/**' }]);
  expect([write('src/a'), call('mcp_move', { path: 'src/a' })]).toEqual(['allow', 'allow']);
  expect(call('mcp_move', { path: 'src/a', destination: 'lib/a' })).toBe('ask');
});
