import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { homedir } from 'node:os';
import { CancellationToken, createRuntime } from '@whoa/core';
import {
  createBashTool,
  createContainment,
  detectSandbox,
  type NetworkRequest,
  type SandboxOptions,
} from '@whoa/tools';
import { describe, expect, onTestFinished, test } from 'vitest';
import { BIN, createHome } from '../command/terminal.ts';
import { forChange } from '../night.ts';
import { ESCAPES } from '../process-escapes/escapes.ts';
import { runRound } from '../process-escapes/round.ts';
import { callTool, createWorkspace } from '../workspace.ts';

const CLASSES = [
  'plain child',
  'double-fork daemon',
  'env -i setsid, orphaned',
  'sheds every tag on purpose',
  'burst of forty',
];

test('the shell works inside, and sees nothing of the environment of the host', async () => {
  using workspace = createWorkspace({ 'a.txt': 'a\n' });
  process.env['HOST_KEY'] = 'SECRET-41f1';
  await using containment = createContainment({ sandbox: { kind: 'workspace', workspace: workspace.path } });
  const runtime = createRuntime({
    tools: [createBashTool({ containment, cwd: workspace.path, env: { set: { MINE: '1' } } })],
  });
  const command = 'cat a.txt; echo b > b.txt; echo $MINE $HOME; cat /proc/*/environ | tr "\\0" "\\n"; touch /etc/x';
  const [result] = await runtime.execute([{ id: 'call', tool: 'bash', input: { command } }]);
  delete process.env['HOST_KEY'];
  expect(result!.content).toMatch(/a\n1 \/home\/agent\n/);
  expect(result!.content).toContain('Read-only file system');
  expect(result!.content).not.toContain('SECRET');
  expect(workspace.read('b.txt')).toBe('b\n');
});

test.each(
  forChange(
    ESCAPES.filter(({ name }) => CLASSES.includes(name)),
    ({ name }) => name === 'double-fork daemon',
  ),
)('no process survives inside: $name', async (escapeKind) => {
  await using containment = createContainment({
    sandbox: { kind: 'workspace', readable: [import.meta.dirname.replace(/containment$/, 'process-escapes')] },
  });
  const { survivors, zombies, verified } = await runRound(escapeKind, containment);
  expect({ survivors, zombies }).toEqual({ survivors: 0, zombies: 0 });
  expect(verified).toBe('namespace');
});

test('a cancel ends a command inside the sandbox, and keeps its output', async () => {
  using workspace = createWorkspace();
  using token = new CancellationToken();
  await using containment = createContainment({ sandbox: { kind: 'read-only', workspace: workspace.path } });
  const tool = createBashTool({ containment, cwd: workspace.path });
  const { promise: started, resolve } = Promise.withResolvers<void>();
  const runtime = createRuntime({ tools: [tool], hooks: { 'call-update': () => resolve() } });
  const running = runtime.execute([{ id: '1', tool: 'bash', input: { command: 'echo here; sleep 300' } }], { token });
  const ended = running.catch((error: { partial: { state: string; content: string }[] }) => error.partial[0]);
  await started;
  token.cancel({ kind: 'user' }, { mode: 'now' });
  expect(await ended).toMatchObject({ state: 'interrupted', content: expect.stringContaining('here') as unknown });
});

test('only the hosts of the list are reached, through the proxy, and every request is reported', async () => {
  using workspace = createWorkspace();
  const site = createServer((_request, response) => response.end('hello from outside')).listen(0, '127.0.0.1');
  await once(site, 'listening');
  onTestFinished(() => void site.close());
  const { port } = site.address() as AddressInfo;
  const requests: NetworkRequest[] = [];
  const network = {
    allow: [`127.0.0.1:${port}`, 'localhost.example'],
    onRequest: (one: NetworkRequest) => requests.push(one),
  };
  await using containment = createContainment({ sandbox: { kind: 'workspace', workspace: workspace.path, network } });
  const runtime = createRuntime({ tools: [createBashTool({ containment, cwd: workspace.path })] });
  const get = (address: string): string => `perl -MIO::Socket::INET -e '
    my $s = IO::Socket::INET->new("127.0.0.1:3128") or die "no proxy";
    print $s "GET http://${address}/ HTTP/1.0\\r\\nHost: ${address}\\r\\n\\r\\n"; print <$s>'`;
  const command = `${get(`127.0.0.1:${port}`)}; ${get('127.0.0.1:1')}; exec 3<>/dev/tcp/127.0.0.1/${port} || echo direct refused`;
  const [result] = await runtime.execute([{ id: 'call', tool: 'bash', input: { command } }]);
  expect(result!.content).toContain('hello from outside');
  expect(result!.content).toContain('127.0.0.1:1 is refused: it is not on the list');
  expect(result!.content).toContain('direct refused');
  expect(requests.map(({ host, port: at, isAllowed }) => ({ host, port: at, isAllowed }))).toEqual([
    { host: '127.0.0.1', port, isAllowed: true },
    { host: '127.0.0.1', port: 1, isAllowed: false },
  ]);
});

test.each([
  [['example.com'], 'from inside'],
  [['localhost:4'], 'failed'],
])('with %j on the list, a request to a server on the sandbox’s own loopback returns: %s', async (allow, heard) => {
  using workspace = createWorkspace();
  const sandbox = { kind: 'workspace', workspace: workspace.path, network: { allow } } as const;
  await using containment = createContainment({ sandbox });
  const runtime = createRuntime({ tools: [createBashTool({ containment, cwd: workspace.path })] });
  workspace.write(
    'ask.mjs',
    `import { createServer } from 'node:http';
    const server = createServer((_, response) => response.end('from inside')).listen(0, '127.0.0.1', async () => {
      const response = await fetch('http://127.0.0.1:' + server.address().port);
      console.log(response.ok ? await response.text() : 'failed');
      process.exit();
    });`,
  );
  const [result] = await runtime.execute([{ id: 'call', tool: 'bash', input: { command: '/run/whoa/node ask.mjs' } }]);
  expect(result!.content).toContain(heard);
});

test('sandboxes that cannot be enforced are rejected: a home folder, the system, another folder, a wrong word', async () => {
  using workspace = createWorkspace();
  for (const [folder, words] of [
    [homedir(), /contains a home folder/],
    ['/', /contains a home folder/],
    ['/usr/share', /is a system folder/],
    [workspace.at('nowhere'), /cannot be used/],
  ] as const) {
    expect(() => createContainment({ sandbox: { kind: 'workspace', workspace: folder } })).toThrow(words);
    expect(await detectSandbox({ kind: 'workspace', workspace: folder })).toMatchObject({ isAvailable: false });
  }
  expect(() => createContainment({ sandbox: 'strong' as 'none' })).toThrow(/sandbox: expected 'workspace'/);
  const sandbox = { kind: 'workspace', workspace: workspace.path } as const;
  expect(() => createContainment({ sandbox, technique: 'tags' })).toThrow(/got 'tags'/);
  expect(() => createContainment({ sandbox: { ...sandbox, limits: { processes: 0 } } })).toThrow(/limits\.processes/);
  await using containment = createContainment({ sandbox });
  const outside = containment.start({ argv: ['true'], env: {}, cwd: '/' });
  await expect(outside).rejects.toThrow(/cwd: \/ is outside the sandbox's workspace/);
});

test('a sandbox without a working bubblewrap fails to start, with what to install', () => {
  using workspace = createWorkspace();
  const program = `import { createContainment } from '@whoa/tools';
    const containment = createContainment({ sandbox: { kind: 'workspace', workspace: '${workspace.path}' } });
    await containment.start({ argv: ['true'], env: {} }).catch((error) => console.log(error.message));
    await containment[Symbol.asyncDispose]();`;
  const args = ['--conditions=@whoa/source', '--input-type=module', '-e', program];
  // Inside of another that makes no more user namespaces.
  const outer = [
    '--dev-bind',
    '/',
    '/',
    '--proc',
    '/proc',
    '--unshare-user',
    '--disable-userns',
    '--',
    process.execPath,
  ];
  const { stdout } = spawnSync('bwrap', [...outer, ...args], { encoding: 'utf8', cwd: import.meta.dirname });
  expect(stdout).toMatch(/^The sandbox 'workspace' does not work here: .*Install bubblewrap 0\.8 or later/);
});

test('the command prints its sandbox, runs commands inside, and requires the option where no one can approve', () => {
  using home = createHome();
  const command = 'echo x > made.txt; echo y > ../outside.txt; true';
  const script = [[{ call: 'bash', input: { command } }], ['Done.']];
  home.folder.write('project/script.json', JSON.stringify(script));
  const [file = '', ...bin] = BIN;
  const run = (...args: string[]) =>
    spawnSync(file, [...bin, 'run', ...args, '--model', 'scripted:script.json', 'hi'], {
      cwd: home.folder.at('project'),
      env: home.env,
      input: '',
      encoding: 'utf8',
    });
  const inside = run('--yes', '--sandbox', 'workspace');
  expect(inside.stderr).toMatch(
    /^sandbox workspace: commands write to this folder only, do not see your keys, and have no network; processes: namespace\n/,
  );
  expect(inside.status, inside.stderr).toBe(0);
  expect(home.folder.read('project/made.txt')).toBe('x\n');
  expect(home.folder.list()).not.toContain('outside.txt');
  expect(inside.stderr).not.toContain('runs outside the sandbox later');
  expect(run('--yes')).toMatchObject({
    status: 2,
    stderr: 'whoa run: --yes without a terminal needs a sandbox choice: add --sandbox workspace, read-only or none\n',
  });
  expect(run().stderr).toMatch(/^sandbox workspace: /);
  expect(run('--sandbox', 'strong')).toMatchObject({
    status: 2,
    stderr: "whoa run: --sandbox: expected one of workspace, read-only, none, got 'strong'\n",
  });
}, 60_000);

test('the command reports what changed and runs programs later, outside the sandbox', () => {
  using home = createHome();
  const command = 'echo x > .envrc; git init -q sub; git -C sub config core.fsmonitor evil; echo y > b.txt';
  home.folder.write('project/script.json', JSON.stringify([[{ call: 'bash', input: { command } }], ['Done.']]));
  home.folder.write('project/package.json', '{}');
  const [file = '', ...bin] = BIN;
  const run = (...more: string[]) => {
    const args = ['run', '--yes', '--sandbox', 'workspace', '--model', 'scripted:script.json', 'hi', ...more];
    const options = { cwd: home.folder.at('project'), env: home.env, input: '', encoding: 'utf8' } as const;
    return spawnSync(file, [...bin, ...args], options);
  };
  expect(run().stderr).toContain(
    'Changed in this run, and runs outside the sandbox later:\n  .envrc\n  sub/.git  core.fsmonitor=evil\n',
  );
  rmSync(home.folder.at('project/sub'), { recursive: true });
  rmSync(home.folder.at('project/.envrc'));
  const lines = run('--json')
    .stdout.trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { type: string });
  expect(lines).toContainEqual({ type: 'run-later', lines: ['.envrc', 'sub/.git  core.fsmonitor=evil'] });
});

test('the configuration and the tasks of the command are not visible in a folder that contains them', () => {
  using home = createHome({ 'config/a': 'a\n', 'proj/script.json': '[["Hi."]]' });
  const owned = home.folder.at('OWNED');
  const config = `import { writeFileSync } from 'node:fs'; writeFileSync('${owned}', ''); export default {};`;
  // The name is in two parts, so that no check of the text sees it.
  const bash = `d=wh; d=$d'oa'; ls -A $d; echo "${config}" > $d/$d.config.mjs; mv $d x; mkdir -p $d; echo "${config}" > $d/$d.config.mjs`;
  const calls = [
    { call: 'bash', input: { command: bash } },
    { call: 'read', input: { path: 'whoa/note' } },
    { call: 'grep', input: { pattern: 'TOP.[A-Z]+' } },
    { call: 'find', input: { glob: '**/note' } },
    { call: 'write', input: { path: 'whoa/whoa.config.mjs', content: config } },
  ];
  home.folder.write('script.json', JSON.stringify([...calls.map((call) => [call]), ['Done.']]));
  home.folder.write('config/whoa/note', 'TOP-SECRET');
  const env = { ...home.env, HOME: home.folder.at('proj') };
  const [file = '', ...bin] = BIN;
  const run = (cwd: string, ...args: string[]) =>
    spawnSync(file, [...bin, 'run', ...args, 'hi'], { cwd: home.folder.at(cwd), env, input: '', encoding: 'utf8' });
  const script = `scripted:${home.folder.at('script.json')}`;
  const inside = run('config', '--yes', '--sandbox', 'workspace', '--model', script, '--output', 'full');
  expect(inside.stdout, inside.stderr).toContain('Done.');
  expect(inside.stdout + inside.stderr).not.toContain('TOP-SECRET');
  expect(home.folder.list().filter((name) => name.startsWith('config/whoa/'))).toEqual(['config/whoa/note']);
  expect(run('proj', '--sandbox', 'none', '--model', 'scripted:script.json').status).toBe(0);
  expect(existsSync(owned)).toBe(false);
});

const READS = [
  ['none', true],
  ['read-only', false],
  ['workspace', false],
] as const;
test.each(forChange(READS, ([kind]) => kind !== 'read-only'))(
  'in the sandbox %s, the keys of the host can be read by commands: %s',
  (kind, isRead) => {
    using home = createHome();
    // The result would redact the key, so the command only prints whether it has it.
    const command =
      "tr '\\0' '\\n' </proc/$PPID/environ 2>/dev/null | grep -q ^MY_KEY=SECRET && echo found || echo nothing";
    const script = [
      [{ call: 'bash', input: { command } }],
      [{ call: 'write', input: { path: 'a', content: '' } }],
      ['Done.'],
    ];
    home.folder.write('project/script.json', JSON.stringify(script));
    const [file = '', ...bin] = BIN;
    const args = ['run', '--yes', '--sandbox', kind, '--model', 'scripted:script.json', 'hi'];
    const env = { ...home.env, MY_KEY: 'SECRET' };
    const { stderr } = spawnSync(file, [...bin, ...args], {
      cwd: home.folder.at('project'),
      env,
      input: '',
      encoding: 'utf8',
    });
    expect(stderr).toContain(isRead ? '│ found' : '│ nothing');
    expect(existsSync(home.folder.at('project/a'))).toBe(kind !== 'read-only');
  },
);

test('a name on the list that resolves to an internal address is rejected', async ({ skip }) => {
  const names = readFileSync('/etc/hosts', 'utf8').matchAll(/^127\.[\d.]+\s+(\S+)/gm);
  const name = [...names].map(([, first]) => first!).find((one) => one !== 'localhost');
  if (name === undefined) return skip('/etc/hosts names this machine only localhost');
  using workspace = createWorkspace();
  const requests: NetworkRequest[] = [];
  const network = { allow: [name], onRequest: (one: NetworkRequest) => requests.push(one) };
  await using containment = createContainment({ sandbox: { kind: 'workspace', workspace: workspace.path, network } });
  const command = `perl -MIO::Socket::INET -e '
    my $s = IO::Socket::INET->new("127.0.0.1:3128") or die; print $s "CONNECT ${name}:443 HTTP/1.1\\r\\n\\r\\n"; print <$s>'`;
  const { content } = await callTool(createBashTool({ containment, cwd: workspace.path }), { command });
  expect(content).toMatch(/403 Forbidden[\s\S]*resolves to the internal address 127\./);
  expect(requests).toMatchObject([{ host: name, port: 443, isAllowed: false }]);
});

const PLACES = [
  ['in a sandbox', { sandbox: 'workspace' }],
  ['in a sandbox with a network', { sandbox: { kind: 'workspace', network: { allow: ['example.com'] } } }],
  ['isolated', { isolate: true }],
  ['without a sandbox', {}],
  ['found by tags', { technique: 'tags' }],
] as const;

describe.each(forChange(PLACES, ([where]) => !['in a sandbox with a network', 'isolated'].includes(where)))(
  '%s',
  (_where, options) => {
    /** Runs a command, and stops it when it prints `up`. */
    const run = async (command: string) => {
      using workspace = createWorkspace();
      using token = new CancellationToken();
      const { sandbox } = options as { sandbox?: SandboxOptions | 'workspace' };
      const inside = typeof sandbox === 'string' ? { kind: sandbox } : sandbox;
      await using containment = createContainment({
        ...options,
        ...(inside && { sandbox: { ...inside, workspace: workspace.path } }),
      });
      const stop = ({ partial }: { partial: { content: unknown } }): void => {
        if (partial.content === 'up') token.cancel({ kind: 'user' }, { mode: 'now' });
      };
      const runtime = createRuntime({
        tools: [createBashTool({ containment, cwd: workspace.path })],
        hooks: { 'call-update': stop },
      });
      const running = runtime.execute([{ id: 'call', tool: 'bash', input: { command } }], { token });
      const [result] = await running.catch((error: { partial: Awaited<typeof running> }) => error.partial);
      return { content: result!.content, ...(result!.details as { cleanup: { ended: number }; exitCode: number }) };
    };

    test('the result shows how many processes were ended when the command had returned', async () => {
      const { content, cleanup } = await run('sleep 300 & setsid sleep 300 >/dev/null 2>&1 & echo server started');
      expect(content).toBe('server started\n[ended, because the command had returned: 2 of its processes]');
      expect(cleanup).toMatchObject({ ended: 2, survivors: 0 });
    });

    test('a command that leaves nothing ended nothing, and its exit code and errors are kept', async () => {
      const { content, cleanup, exitCode } = await run('true | cat; echo wrong >&2; exit 7');
      expect({ content, exitCode }).toEqual({ content: 'Exit code 7\nwrong', exitCode: 7 });
      expect(cleanup).toMatchObject({ ended: 0, survivors: 0 });
    });

    test('a command that is stopped counts its own processes and none of ours', async () => {
      const { cleanup } = await run('sleep 300 & echo up; wait');
      expect(cleanup).toMatchObject({ ended: 2, survivors: 0 });
    });
  },
);
