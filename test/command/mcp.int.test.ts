import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { type CallResult, CancellationToken, createRuntime, type Tool } from '@whoa/core';
import { createMcpTools, type McpTools } from '@whoa/tools';
import { expect, onTestFinished, test } from 'vitest';
import { callTool } from '../workspace.ts';
import { startCommand } from './process.ts';
import { BIN, createHome, type Home } from './terminal.ts';

const SLOW = [['Let me see. ', { call: 'bash', input: { command: 'echo begun > begun; sleep 300' } }], ['Well.']];

const OPTIONS = ['mcp', '--yes', '--sandbox', 'none', '--model', 'scripted:script.json'];

function home(script: unknown): Home {
  const made = createHome({ 'script.json': JSON.stringify(script) });
  onTestFinished(() => made[Symbol.dispose]());
  return made;
}

/** An MCP host that has started the command. */
function host({ folder, env }: Home, negotiate: boolean): Promise<McpTools> {
  const [command = '', ...args] = BIN;
  const transport = { type: 'stdio', command, args: [...args, ...OPTIONS], env, cwd: folder.path, negotiate } as const;
  return createMcpTools({ name: 'whoa', transport });
}

function start(tool: Tool, token: CancellationToken) {
  const { promise: updated, resolve } = Promise.withResolvers<void>();
  const result = createRuntime({ tools: [tool], hooks: { 'call-update': () => resolve() } })
    .execute([{ id: 'call', tool: tool.name, input: { prompt: 'Is all well?' } }], { token })
    .then(
      ([only]) => only!,
      (error: { partial: CallResult[] }) => error.partial[0]!,
    );
  return { result, updated };
}

const readTasks = async (own: Home): Promise<unknown> => JSON.parse((await own.main(['tasks', '--json'])).stdout);

test.each([true, false])('a host calls an agent, and gets its answer (MCP tasks: %s)', async (negotiate) => {
  const own = home([['Fine.']]);
  await using mcp = await host(own, negotiate);
  expect(await callTool(mcp.tools[0]!, { prompt: 'How?' })).toMatchObject({ state: 'finished', content: 'Fine.' });
  expect(await readTasks(own)).toMatchObject({ status: 'success', inputs: ['How?'] });
});

test('a cancel of a call that is a task is confirmed, and nothing runs on', async () => {
  const own = home(SLOW);
  await using mcp = await host(own, true);
  using token = new CancellationToken();
  const { result, updated } = start(mcp.tools[0]!, token);
  await updated;
  token.cancel({ kind: 'user' }, { mode: { abortMs: 60_000 } });
  const ended = await result;
  expect(ended.state).toBe('interrupted');
  expect(ended.content).toContain('The server confirmed that its task was cancelled.');
  expect(await readTasks(own)).toMatchObject({
    status: 'cancelled',
    outcome: { reason: { kind: 'user', via: 'mcp' } },
  });
});

const CALL = {
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: {
    name: 'assistant',
    arguments: { prompt: 'Is all well?' },
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'host', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': { extensions: { 'io.modelcontextprotocol/tasks': {} } },
    },
  },
};

test.each([
  ['closes its connection', 'disconnect', (child: ChildProcessWithoutNullStreams) => child.stdin.end()],
  ['sends SIGTERM', 'shutdown', (child: ChildProcessWithoutNullStreams) => child.kill('SIGTERM')],
])('a host that %s ends its processes', async (_, kind, leave) => {
  const own = home(SLOW);
  const [command = '', ...args] = BIN;
  const child = spawn(command, [...args, ...OPTIONS], { cwd: own.folder.path, env: own.env });
  onTestFinished(() => void child.kill('SIGKILL'));
  child.stdin.write(`${JSON.stringify(CALL)}\n`);
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  expect(JSON.parse(line)).toMatchObject({ id: 1, result: { resultType: 'task', ttlMs: null } });
  leave(child);
  expect(await once(child, 'close')).toEqual([0, null]);
  expect(await readTasks(own)).toMatchObject({ status: 'cancelled', outcome: { reason: { kind } } });
});

test('a server has its agents at /mcp, for who has a token', async () => {
  const own = home([['Fine.']]);
  const server = startCommand(own, ['serve', '--port', '0', '--work', ...OPTIONS.slice(1)]);
  const { url, token } = (await server.waitFor({ type: 'listening' })) as { url: string; token: string };
  const open = (headers: Record<string, string>) =>
    createMcpTools({ name: 'whoa', transport: { type: 'http', url: `${url}/mcp`, headers } });
  await expect(open({})).rejects.toThrow(/could not be reached/);
  await using mcp = await open({ authorization: `Bearer ${token}` });
  expect(await callTool(mcp.tools[0]!, { prompt: 'How?' })).toMatchObject({ state: 'finished', content: 'Fine.' });
});
