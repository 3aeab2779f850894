// A project brings a program for every name on this machine, in folders that come first in PATH. No command may start one.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, linkSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { createMcpTools } from '@whoa/tools';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { COMMANDS } from '../../packages/whoa/src/command-table.ts';
import { startProcess } from '../command/process.ts';
import { BIN, createHome, type Home } from '../command/terminal.ts';
import { forChange } from '../night.ts';
import { SERVER } from '../tools/mcp-server.ts';
import { createWorkspace, type Workspace } from '../workspace.ts';

const REAL_PATH = process.env['PATH'] ?? '';
/** As npx, an active virtual environment and direnv put them into PATH. */
const FOLDERS = ['node_modules/.bin', '.venv/bin', 'bin'];
/** Programs that the machine may not have, but that we would start. */
const WANTED = ['bash', 'bwrap', 'git', 'mkfifo', 'node', 'rg', 'setpriv', 'sh', 'true', 'unshare', 'xdg-open'];

/** Puts the traps into a project. Each writes its own name to a file next to the project. */
function setTraps(project: Workspace): { readonly path: string; readonly fired: () => string } {
  const names = REAL_PATH.split(':').flatMap((folder) => (existsSync(folder) ? readdirSync(folder) : []));
  const trap = project.write('trap', `#!/bin/sh\necho "$0 $*" >> '${project.path}/fired'\nexit 1\n`);
  chmodSync(trap, 0o755);
  for (const folder of FOLDERS) {
    mkdirSync(project.at(`project/${folder}`), { recursive: true });
    for (const name of new Set([...names, ...WANTED])) linkSync(trap, project.at(`project/${folder}/${name}`));
  }
  return {
    path: [...FOLDERS.map((folder) => project.at(`project/${folder}`)), ...FOLDERS, '.', REAL_PATH].join(':'),
    fired: () => (existsSync(project.at('fired')) ? project.read('fired') : ''),
  };
}

/** One call of every kind of tool. The shell command starts no program. */
const SCRIPT = [
  [{ call: 'bash', input: { command: 'echo $BASH_VERSION > made.txt; echo {} > package.json' } }],
  [{ call: 'grep', input: { pattern: '[0-9]' } }],
  [{ call: 'find', input: { glob: '*.txt' } }],
  ['Done.'],
];
const AGENT = ['--yes', '--model', 'scripted:script.json'];

/** How each command is run: to its end, or until it prints that it listens. */
const RUNS: Readonly<Record<string, readonly { readonly args: readonly string[]; readonly listens?: true }[]>> = {
  run: ['workspace', 'read-only', 'none'].map((kind) => ({ args: [...AGENT, '--sandbox', kind, 'go'] })),
  tasks: [{ args: [] }],
  watch: [{ args: ['t1'] }],
  cancel: [{ args: ['--all'] }],
  approve: [{ args: [] }],
  steer: [{ args: ['t1', 'hello'] }],
  requeue: [{ args: ['t1'] }],
  halt: [{ args: ['--agent', 'assistant'] }],
  pause: [{ args: ['--agent', 'assistant'] }],
  resume: [{ args: ['--agent', 'assistant'] }],
  erase: [{ args: ['--tenant', 'other'] }],
  engine: [{ args: ['off', 'assistant'] }],
  console: [{ args: ['--open'], listens: true }],
  demo: [{ args: ['--open'], listens: true }],
  serve: [{ args: [...AGENT, '--sandbox', 'workspace'], listens: true }],
  worker: [{ args: [...AGENT, '--sandbox', 'workspace'], listens: true }],
  migrate: [{ args: ['--plan'] }],
  acp: [{ args: [...AGENT, '--sandbox', 'workspace'] }],
  mcp: [{ args: [...AGENT, '--sandbox', 'workspace'] }],
  echo: [{ args: [] }],
  check: [{ args: ['acp', '--list', '--', ...BIN, 'echo'] }],
  completions: [{ args: ['bash'] }],
  new: [{ args: ['tool', 'weather'] }],
  doctor: [{ args: [] }],
};

/** What starts no program of its own waits for the night. */
const STARTS_NOTHING =
  'tasks watch cancel approve steer requeue halt pause resume erase engine migrate echo completions new'.split(' ');

describe('with a trap for every program in the project', () => {
  let home: Home;
  let traps: ReturnType<typeof setTraps>;
  const project = (): { cwd: string; env: Record<string, string> } => ({
    cwd: home.folder.at('project'),
    env: { ...home.env, PATH: traps.path },
  });
  beforeAll(() => {
    home = createHome({ 'project/script.json': JSON.stringify(SCRIPT), 'project/a.txt': '1\n' });
    traps = setTraps(home.folder);
  });
  afterAll(() => home[Symbol.dispose]());

  test('the traps work: a program that is started through PATH is one', async () => {
    await once(spawn('mkfifo', ['x'], project()), 'exit');
    expect(traps.fired()).toContain('node_modules/.bin/mkfifo x');
    home.folder.write('fired', '');
  });

  const cases = Object.entries(RUNS).flatMap(([name, runs]) =>
    runs.map((run) => ({ name, line: run.args.join(' '), ...run })),
  );
  const chosen = forChange(
    cases,
    ({ name, args }) =>
      !STARTS_NOTHING.includes(name) && !['read-only', 'none'].includes(args[args.indexOf('--sandbox') + 1]!),
  );
  test.each(chosen)('whoa $name $line starts none of them', async ({ name, args, listens }) => {
    const [file = '', ...more] = [...BIN, name, ...args];
    if (listens) {
      const command = startProcess([file, ...more, '--json'], project());
      await command.waitFor(name === 'worker' ? { type: 'working' } : { type: 'listening' });
      command.kill('SIGTERM');
      await command.closed;
    } else {
      const child = spawn(file, more, { ...project(), stdio: ['ignore', 'pipe', 'inherit'] });
      let output = '';
      child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
      const [code] = (await once(child, 'close')) as [number];
      if (name === 'run')
        expect({ code, output }).toEqual({ code: 0, output: expect.stringContaining('Done.') as string });
    }
    expect(traps.fired()).toBe('');
  });

  test('whoa chat starts none of them', async () => {
    const terminal = home.openTerminal();
    terminal.type(`cd project; PATH='${traps.path}' whoa chat --model scripted:script.json`);
    terminal.press('Enter');
    await terminal.waitFor(/Esc stops the agent/);
    terminal.type('go');
    terminal.press('Enter');
    await terminal.waitFor(/made\.txt/);
    expect(traps.fired()).toBe('');
  });

  test('a session of an editor starts none of them, nor does the MCP server it names', async () => {
    const [file, ...args] = [...BIN, 'acp', ...AGENT, '--sandbox', 'workspace'];
    const child = spawn(file, args, { ...project(), stdio: ['pipe', 'pipe', 'pipe'] });
    onTestFinished(() => void child.kill('SIGKILL'));
    let errors = '';
    child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const send = async (id: number, method: string, params: object): Promise<Record<string, unknown>> => {
      child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
      for (;;) {
        const message = JSON.parse((await lines.next()).value as string) as { id?: number } & Record<string, unknown>;
        if (message.id === id) return message;
      }
    };
    await send(1, 'initialize', { protocolVersion: 1, clientCapabilities: {} });
    const server = { name: 'test', command: 'node', args: ['--conditions=@whoa/source', SERVER, 'stdio'], env: [] };
    const opened = await send(2, 'session/new', { cwd: project().cwd, mcpServers: [server] });
    const { sessionId } = opened['result'] as { sessionId: string };
    await send(3, 'session/prompt', { sessionId, prompt: [{ type: 'text', text: 'go' }] });
    expect(errors).toMatch(/the MCP server 'test' runs \/.*\/node\n/);
    expect(errors).not.toContain('node_modules/.bin/node\n');
    expect(traps.fired()).toBe('');
    await expect.poll(() => errors).toContain('runs outside the sandbox later:\n  package.json\n');
    child.stdin.end();
    await once(child, 'close');
  });
});

test('every command runs next to the traps', () => {
  expect([...Object.keys(RUNS), 'chat'].toSorted()).toEqual(Object.keys(COMMANDS).toSorted());
});

test('an MCP server that exists only in the workspace is not started, and the error explains how to allow it', async () => {
  using project = createWorkspace();
  const server = project.write('bin/only-here', `#!/bin/sh\ntouch '${project.at('fired')}'\n`);
  chmodSync(server, 0o755);
  const env = { PATH: `${project.at('bin')}:bin:/usr/bin:/bin` };
  const transport = { type: 'stdio', command: 'only-here', env, cwd: project.path } as const;
  await expect(createMcpTools({ name: 'here', transport })).rejects.toThrow(
    /Could not find 'only-here' in PATH outside .*; install it, or use its full path/,
  );
  expect(existsSync(project.at('fired'))).toBe(false);
  const named = { ...transport, command: join(project.path, 'bin/only-here') };
  await expect(createMcpTools({ name: 'here', transport: named })).rejects.toThrow(/could not be reached/);
  expect(existsSync(project.at('fired'))).toBe(true);
});
