import { mkdirSync, symlinkSync } from 'node:fs';
import { defineTool } from '@whoa/core';
import type { ApprovalRequest } from '@whoa/core/approval';
import type { Effects } from '@whoa/core/embed';
import { expect, onTestFinished, test } from 'vitest';
import { createWorkspace } from '../../../../test/workspace.ts';
import { type ApprovalRule, createJudge } from './rules.ts';

function setUp(rules: readonly ApprovalRule[], { yes = false, files = {} as Record<string, string> } = {}) {
  const workspace = createWorkspace(files);
  onTestFinished(() => workspace[Symbol.dispose]());
  const protectedPaths = { folders: [workspace.at('own')] };
  const judge = createJudge({ rules, yes, cwd: workspace.path, protectedPaths });
  const about = (name: string, input: unknown, effects: Effects): ApprovalRequest => {
    const validate = (value: unknown) => ({ value });
    const schema = { '~standard': { version: 1 as const, vendor: 'test', validate } };
    const tool = defineTool<unknown>({ name, description: '', inputSchema: schema, effects, execute: () => '' });
    return { call: { id: 'c', tool: name, input }, tool, effects, input };
  };
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

test('without rules reading is allowed and everything else is asked about; --yes allows the rest', () => {
  const asking = setUp([]);
  expect([asking.read('a'), asking.write('a'), asking.command('ls'), asking.call('other')]).toEqual([
    'allow',
    'ask',
    'ask',
    'ask',
  ]);
  const yes = setUp([], { yes: true });
  expect([yes.write('a'), yes.command('ls $(x)'), yes.call('other')]).toEqual(['allow', 'allow', 'allow']);
});

test.each([
  'git status',
  'git status -s',
  "git 'status' --short",
  'git "status"',
  '  git status ; git status',
  'git\tstatus\n',
])('the words of a command are compared as a shell reads them: %j', (command) =>
  expect(setUp([allow('git status')]).command(command)).toBe('allow'),
);

test.each([
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

test('every command of a line must be allowed, each by its own rule', () => {
  const { command } = setUp([allow('git status'), allow('npm test')]);
  expect(command('git status && npm test -- a')).toBe('allow');
  expect(command('git status && npm run x')).toBe('ask');
});

test.each([
  'git push',
  'ls && git push --force',
  'ls; git push',
  'ls | git push',
  'ls $(x); git push',
  "git 'push'",
  'g"it" push',
])('deny beats everything, wherever in the line: %j', (command) => {
  const { command: judge } = setUp([{ decision: 'deny', command: 'git push' }, allow('git push'), allow('ls')], {
    yes: true,
  });
  expect(judge(command)).toBe('deny');
});

test('with a rule that restricts commands, what cannot be read is asked about even under --yes', () => {
  const { command, why } = setUp([{ decision: 'deny', command: 'git push' }], { yes: true });
  expect(command('sh -c "$X"')).toBe('ask');
  expect(why('sh -c "$X"')).toContain('certainty');
  expect(command('make')).toBe('allow');
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

test('what is run later and what holds keys is asked about, whatever rules and --yes say', () => {
  const { workspace, write, read, command } = setUp([{ decision: 'allow' }], { yes: true });
  mkdirSync(workspace.at('.git/hooks'), { recursive: true });
  symlinkSync('.git/hooks', workspace.at('innocent'));
  for (const path of [
    '.git/hooks/pre-commit',
    'innocent/pre-commit',
    '.git/config',
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
    'git config core.hooksPath x',
    'cat ~/.ssh/id_rsa',
    `ls ${workspace.at('own')}`,
  ])
    expect([line, command(line)]).toEqual([line, 'ask']);
  for (const line of ['npm test', 'git status', 'cat environment.env.md'])
    expect([line, command(line)]).toEqual([line, 'allow']);
});
