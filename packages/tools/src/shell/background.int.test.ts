import { CancellationToken, createRuntime, type Tool, toText } from '@whoa/core';
import { afterAll, expect, test } from 'vitest';
import { createContainment } from '../process/containment/create-containment.ts';
import { identify, isRunning } from '../process/identity/identity.ts';
import { createBackgroundProcesses } from './background.ts';
import { createBackgroundTools } from './background-tools.ts';
import { createBashTool } from './bash.ts';
import { createShellEnvironment } from './environment.ts';

const containment = createContainment();
afterAll(() => containment[Symbol.asyncDispose]());
const where = { cwd: undefined, env: createShellEnvironment() };
const server = 'setsid sleep 305 & echo serving; wait';

test('a model starts, lists, reads and stops a process that outlives the call', async () => {
  await using background = createBackgroundProcesses({ containment });
  const tools = [
    createBashTool({ containment, background }),
    ...createBackgroundTools(background),
  ] as unknown as Tool[];
  const runtime = createRuntime({ tools });
  const call = async (tool: string, input: object): Promise<string> => {
    const [result] = await runtime.execute([{ id: tool, tool, input }]);
    return toText(result!.content);
  };
  expect(await call('background_list', {})).toBe('There are none.');
  expect(await call('bash', { command: server, background: true })).toMatch(
    /^Started in the background as bg1 \(pid \d+\)$/,
  );
  const root = identify(background.get('bg1')!.pid)!;
  await until(() => background.get('bg1')!.output.bytes > 0);
  expect(await call('background_list', {})).toContain('bg1  running');
  expect(await call('background_output', { id: 'bg1' })).toMatch(/^running \(pid \d+\)\nserving$/);
  expect(await call('background_stop', { id: 'bg1' })).toBe('bg1 has ended, with 2 processes.');
  expect(isRunning(root)).toBe(false);
  expect(await call('background_list', {})).toContain('bg1  ended by SIGTERM');
  expect(await call('background_stop', { id: 'bg1' })).toContain('bg1 has ended');
  expect(await call('background_stop', { id: 'bg9' })).toContain("There is no background process 'bg9'");
});

test('a model that was not given background processes cannot start one', () => {
  const schema = createBashTool({ containment }).inputSchema['~standard'].jsonSchema!.input({ target: 'draft-07' });
  expect(Object.keys(schema['properties'] as object)).toEqual(['command', 'timeoutSeconds']);
});

test('background processes end with their owner', async () => {
  const background = createBackgroundProcesses({ containment });
  const roots = [];
  for (let i = 0; i < 3; i++) roots.push(identify((await background.start(server, where)).pid)!);
  expect(roots.filter(isRunning)).toHaveLength(3);
  await background[Symbol.asyncDispose]();
  expect(roots.filter(isRunning)).toHaveLength(0);
  await expect(background.start(server, where)).rejects.toThrow('Cancelled');
});

test('background processes end with the token they belong to, when it is cancelled and when it is disposed', async () => {
  for (const end of [(token: CancellationToken) => token.cancel({ kind: 'user' }, { mode: 'now' }), cancelAndCheck]) {
    const token = new CancellationToken();
    await using background = createBackgroundProcesses({ containment, token });
    const { id, pid } = await background.start(server, where);
    const root = identify(pid)!;
    end(token);
    await until(() => background.get(id)!.state === 'ended');
    expect(isRunning(root)).toBe(false);
    token[Symbol.dispose]();
  }
});

test('a background process that exits by itself is remembered with its exit code', async () => {
  await using background = createBackgroundProcesses({ containment });
  const { id } = await background.start('echo over; exit 7', where);
  await until(() => background.get(id)!.state === 'ended');
  expect(background.get(id)).toMatchObject({ output: { tail: 'over\n' }, end: { exit: { code: 7 } } });
});

test('the number of background processes is limited, and the last ended ones are remembered', async () => {
  await using background = createBackgroundProcesses({ containment, maxProcesses: 2 });
  const starts = await Promise.allSettled([1, 2, 3].map(() => background.start('sleep 305', where)));
  expect(starts.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected']);
  await background.stop('bg1', { mode: 'kill' });
  await background.start('true', where);
});

function cancelAndCheck(token: CancellationToken): void {
  token[Symbol.dispose]();
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
}
