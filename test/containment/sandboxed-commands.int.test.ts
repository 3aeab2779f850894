import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { homedir } from 'node:os';
import { CancellationToken, createRuntime } from '@whoa/core';
import { createBashTool, createContainment, detectSandbox, type NetworkRequest } from '@whoa/tools';
import { expect, onTestFinished, test } from 'vitest';
import { BIN, createHome } from '../command/terminal.ts';
import { ESCAPES } from '../process-escapes/escapes.ts';
import { playRound } from '../process-escapes/round.ts';
import { createWorkspace } from '../workspace.ts';

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

test.each(ESCAPES.filter(({ name }) => CLASSES.includes(name)))(
  'nothing survives inside of: $name',
  async (escapeKind) => {
    await using containment = createContainment({
      sandbox: { kind: 'workspace', readable: [import.meta.dirname.replace(/containment$/, 'process-escapes')] },
    });
    const { survivors, zombies, verified } = await playRound(escapeKind, containment);
    expect({ survivors, zombies }).toEqual({ survivors: 0, zombies: 0 });
    expect(['kernel', 'tags']).toContain(verified);
  },
);

test('a cancel ends a command inside, and what it printed is kept', async () => {
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

test('only the hosts of the list are reached, through the proxy, and every request is told', async () => {
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

test('what cannot be held is refused: a home folder, the system, another folder, a wrong word', async () => {
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

test('where bubblewrap cannot work a sandbox refuses to start, and says what to install', () => {
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

test('the command says which sandbox it uses, runs commands inside, and needs the word where nobody can be asked', () => {
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
    /^sandbox workspace: commands write to this folder only, do not see your keys, and have no network\n/,
  );
  expect(inside.status, inside.stderr).toBe(0);
  expect(home.folder.read('project/made.txt')).toBe('x\n');
  expect(home.folder.list()).not.toContain('outside.txt');
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
