// `whoa acp -- COMMAND` as a process: its options work, and nothing of the agent outlives it.
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { expect, onTestFinished, test } from 'vitest';
import { forChange, isNight } from '../night.ts';
import { BIN, createHome, type Home } from './terminal.ts';

/** Starts a daemon on a prompt and never responds to it. `_look` reports its environment, and the paths it can use. */
const AGENT = `
import { spawn } from 'node:child_process';
import { writeFileSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
const attempt = (work) => { try { return work() ?? 'yes'; } catch (error) { return error.code; } };
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === 'initialize') say({ id, result: { protocolVersion: 1 } });
  if (method === 'session/new') say({ id, result: { sessionId: 's' } });
  if (method === '_exit') process.exit(params.code);
  if (method === '_look') say({ id, result: { env: Object.keys(process.env), home: process.env.HOME, ...Object.fromEntries(
    Object.entries(params).map(([path, mode]) => [path, attempt(() => mode === 'w' ? writeFileSync(path, 'x') : readFileSync(path, 'utf8').length)])) } });
  if (method !== 'session/prompt') return;
  const daemon = spawn('sleep', ['306'], { detached: true, stdio: 'ignore' });
  say({ method: 'session/update', params: { sessionId: 's', update: { sessionUpdate: 'tool_call', toolCallId: 'c', status: 'pending', pid: daemon.pid } } });
}).on('close', () => process.exit(0));
`;

interface Message {
  readonly id?: number;
  readonly params?: { readonly update?: Readonly<Record<string, unknown>> };
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: unknown;
}

function open(options: readonly string[], env: Readonly<Record<string, string>> = {}, agent?: readonly string[]) {
  const home: Home = createHome({
    'project/agent.mjs': AGENT,
    '.config/agent/old': 'x',
    '.profile': 'secret',
    'project/.git/HEAD': '',
    'project/broken': '#!/nowhere/interpreter\n',
  });
  const project = join(home.folder.path, 'project');
  chmodSync(join(project, 'broken'), 0o755);
  const [file = '', ...args] = BIN;
  const command = [...args, 'acp', ...options, '--', ...(agent ?? [process.execPath, join(project, 'agent.mjs')])];
  const child: ChildProcessByStdio<Writable, Readable, Readable> = spawn(file, command, {
    cwd: project,
    env: { ...home.env, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const exited = once(child, 'exit') as Promise<[number | null]>;
  onTestFinished(async () => {
    child.stdin.end();
    await exited;
    home[Symbol.dispose]();
  });
  let said = '';
  child.stderr.on('data', (text: Buffer) => (said += text.toString()));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async (): Promise<Message> => JSON.parse((await lines.next()).value as string) as Message;
  let last = 0;
  const send = (method: string, params: object): void => {
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: ++last, method, params })}\n`);
  };
  const ask = async (method: string, params: object): Promise<Message> => {
    send(method, params);
    return next();
  };
  /** A prompt that has started a daemon. Returns its pid. */
  const begin = async (): Promise<number> => {
    await ask('initialize', { protocolVersion: 1 });
    await ask('session/new', { cwd: project, mcpServers: [] });
    const { params } = await ask('session/prompt', { sessionId: 's', prompt: [] });
    return Number(params?.update?.['pid']);
  };
  return { child, exited, project, home, ask, send, next, begin, said: () => said };
}

const isGone = (pid: number): boolean => !existsSync(`/proc/${pid}`);

test('a cancel ends the processes that the prompt started, and is reported', async () => {
  const { child, next, begin, said, project } = open(['--wait', '200ms', '--log', 'stops.jsonl']);
  const pid = await begin();
  expect(isGone(pid)).toBe(false);
  child.stdin.write('{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}\n');
  expect(await next()).toMatchObject({ params: { update: { toolCallId: 'c', status: 'failed' } } });
  expect(await next()).toMatchObject({ id: 3, result: { stopReason: 'cancelled' } });
  expect(isGone(pid)).toBe(true);
  await expect.poll(() => said()).toMatch(/session\/cancel: the agent did not answer.*processes ended: 1/);
  const [line = ''] = readFileSync(join(project, 'stops.jsonl'), 'utf8').split('\n');
  expect(JSON.parse(line)).toMatchObject({
    type: 'stop',
    agent: 'answered-for',
    closedCalls: 1,
    processes: { ended: 1 },
  });
});

const WAYS = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGKILL', 'end of input'] as const;
test.each(forChange(WAYS, (way) => way === 'SIGKILL' || way === 'end of input'))(
  'no process outlives the proxy: %s',
  async (way) => {
    const { child, exited, begin } = open([]);
    const pid = await begin();
    if (way === 'end of input') child.stdin.end();
    else child.kill(way);
    const [code] = await exited;
    expect(code).toBe(way === 'SIGKILL' ? null : 0);
    await expect.poll(() => isGone(pid)).toBe(true);
  },
);

test('an agent that exits by itself ends the proxy with its code', async () => {
  const { exited, send } = open([]);
  send('_exit', { code: 7 });
  expect(await exited).toEqual([7, null]);
});

test('in a sandbox the agent gets the folders and keys that are named, and no others', async () => {
  const env = { NAMED_KEY: 'a', OTHER_KEY: 'b' };
  const options = ['--wait', '200ms', '--sandbox', 'workspace', '--folder', '../.config/agent', '--key', 'NAMED_KEY'];
  const { child, ask, home, project, begin, next, said } = open(options, env);
  const look = {
    '/home/agent/.config/agent/kept': 'w',
    [join(project, 'made')]: 'w',
    [join(project, '.git/made')]: 'w',
    [join(home.folder.path, '.profile')]: 'r',
  };
  const { result = {} } = await ask('_look', look);
  expect(result['env']).toEqual(expect.arrayContaining(['NAMED_KEY', 'PATH']));
  expect(result['env']).not.toContain('OTHER_KEY');
  expect(Object.keys(look).map((path) => result[path])).toEqual(['yes', 'yes', 'EROFS', 'ENOENT']);
  expect(readFileSync(home.folder.at('.config/agent/kept'), 'utf8')).toBe('x');
  expect(await begin()).toBeGreaterThan(0);
  child.stdin.write('{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}\n');
  await next();
  expect(await next()).toMatchObject({ result: { stopReason: 'cancelled' } });
  await expect.poll(() => said()).toMatch(/processes ended: 1/);
});

test.runIf(isNight).each([
  [['--key', 'X'], /need --sandbox/],
  [['--model', 'x'], /--model: cannot be combined with a command/],
  [['--sandbox', 'workspace', '--key', 'NO_SUCH_KEY'], /this variable is not set/],
  [['--sandbox', 'odd'], /expected one of workspace/],
  [['--wait', 'soon'], /expected a duration/],
])('%j is rejected', async (options, message) => {
  const { exited, said } = open(options);
  expect(await exited).toEqual([2, null]);
  expect(said()).toMatch(message);
});

const WRONG: readonly (readonly [agent: string[], message: RegExp])[] = [
  [[], /expected a command after --/],
  [[''], /expected a command after --/],
  [['nonsense-agent'], /no program 'nonsense-agent' in PATH; install the agent, or give the full path/],
  [['./nonsense'], /no file '.\/nonsense'; check the path/],
  [['agent.mjs/x'], /no file 'agent.mjs\/x'; check the path/],
  [
    ['./agent.mjs', '--acp'],
    /'.\/agent.mjs' is not executable; run: chmod \+x .\/agent.mjs, or start it with its interpreter/,
  ],
  [['../project'], /'..\/project' is a folder; give the path of the agent's program/],
];
test.each(forChange(WRONG, (_, index) => index >= WRONG.length - 2))(
  '%j cannot be started, and the user learns what to do',
  async (agent, message) => {
    const { exited, said } = open([], {}, agent);
    expect(await exited).toEqual([2, null]);
    expect(said()).toMatch(message);
    expect(said()).not.toMatch(/\d{12}|exec:/);
  },
);

test('an agent whose interpreter is missing ends the proxy, and the shell names no number', async () => {
  const { exited, said } = open([], {}, ['./broken']);
  expect(await exited).toEqual([127, null]);
  expect(said()).toMatch(/whoa: .*broken: not found\n.*the agent exited/s);
});

test('an agent that is not visible in the sandbox ends the proxy, and the user learns which option is missing', async () => {
  const home = createHome({ 'agent.sh': '#!/bin/sh\n' });
  onTestFinished(() => home[Symbol.dispose]());
  chmodSync(home.folder.at('agent.sh'), 0o755);
  const { exited, said } = open(['--sandbox', 'workspace'], {}, [home.folder.at('agent.sh')]);
  expect(await exited).toEqual([127, null]);
  expect(said()).toMatch(/not visible in the sandbox, add --readable FOLDER/);
});
