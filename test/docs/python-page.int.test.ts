// The programs of docs/guides/workers/python.md are run against a server, as a reader would.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { createAgent, defineTool } from '@whoa/core';
import { callTools, reply } from '@whoa/core/model';
import { createAccess, createTaskApi, createToken, createTokenAuthenticator, listen, USER_RIGHTS } from '@whoa/server';
import { createMemoryStore, createRunner, createTaskApprovals, type TaskStore } from '@whoa/tasks';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { temporaryFolder } from '../tasks/child.ts';
import { findBlocks, ROOT } from './pages.ts';

const PAGE = 'docs/guides/workers/python.md';

let booked: string[] = [];
let store: TaskStore;
let env: NodeJS.ProcessEnv;
const folder = temporaryFolder();
const stack = new AsyncDisposableStack();

beforeAll(async () => {
  cpSync(join(ROOT, 'examples/python'), folder.path, { recursive: true });
  store = stack.use(createMemoryStore());
  const { token, sha256 } = createToken();
  const authenticate = createTokenAuthenticator([{ sha256, tenant: 'acme', name: 'ann', rights: USER_RIGHTS }]);
  const api = createTaskApi({ store, access: createAccess({ authenticate }), agents: ['assistant'] });
  const server = stack.use(await listen(api));
  env = { ...process.env, URL: server.url, TOKEN: token, PYTHONUNBUFFERED: '1' };
  const approvals = createTaskApprovals();
  const book = defineTool({
    name: 'book',
    description: 'Books a table.',
    inputSchema: z.object({ at: z.string() }),
    effects: 'write',
    execute: ({ at }) => {
      booked.push(at);
      return 'booked';
    },
  });
  const agent = createAgent({
    name: 'assistant',
    tools: [book],
    approve: approvals.approve,
    planner: {
      next: (history) => {
        const last = history.at(-1)!;
        if (last.role === 'tool') return reply(last.content as string);
        return callTools([{ id: 'c1', tool: 'book', input: { at: 'seven' } }]);
      },
    },
  });
  const runner = createRunner({ store, agents: { assistant: agent }, approvals });
  const serving = runner.serve();
  stack.defer(() => serving);
  stack.use(runner);
});
afterAll(async () => {
  await stack[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

function run(input: string): { child: ChildProcessWithoutNullStreams; shows: (text: string) => Promise<string> } {
  const child = spawn('python3', ['book.py', input], { cwd: folder.path, env });
  let printed = '';
  child.stderr.on('data', (data: Buffer) => (printed += data));
  const shows = async (text: string): Promise<string> => {
    while (!printed.includes(text)) {
      const [data] = (await Promise.race([once(child.stdout, 'data'), once(child, 'close')])) as [Buffer | number];
      if (typeof data === 'number') throw new Error(`it ended with ${data}: ${printed}`);
      printed += data;
    }
    return printed;
  };
  return { child, shows };
}

test('a yes lets the call run, and the same program again follows the same task', async () => {
  booked = [];
  const { child, shows } = run('Book a table for two at seven');
  expect(await shows('Allow it?')).toContain('at: seven');
  expect(booked).toEqual([]);
  child.stdin.write('y\n');
  expect(await shows('booked')).toContain('accepted\nsuccess booked');
  await once(child, 'close');
  const again = run('Book a table for two at seven');
  expect(await again.shows('success booked')).not.toContain('Allow');
  expect(booked).toEqual(['seven']);
});

test('Ctrl-C stops the task while it waits for an answer, and shows that it is over', async () => {
  booked = [];
  const { child, shows } = run('Book another table');
  await shows('Allow it?');
  // Python notices a signal that arrives just before a read only after the read.
  while (readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(' ')[2] !== 'S') await setImmediate();
  child.kill('SIGINT');
  expect(await shows('cancelled')).toContain('accepted\ncancelled');
  expect(booked).toEqual([]);
});

test('a program that is killed stops nothing', async () => {
  booked = [];
  const first = run('Book a third table');
  await first.shows('Allow it?');
  first.child.kill('SIGKILL');
  await once(first.child, 'close');
  const second = run('Book a third table');
  await second.shows('Allow it?');
  second.child.stdin.write('y\n');
  await second.shows('success booked');
  expect(booked).toEqual(['seven']);
});

test('a rejected token is explained', async () => {
  const child = spawn('python3', ['book.py', 'x'], { cwd: folder.path, env: { ...env, TOKEN: 'wrong' } });
  let errors = '';
  child.stderr.on('data', (data: Buffer) => (errors += data));
  await once(child, 'close');
  expect(errors).toMatch(/whoa\.Refused: unauthenticated: .+/);
});

test('the commands for curl start a task, deny its call and cancel it', async () => {
  booked = [];
  const commands = findBlocks(PAGE).find(({ text }) => text.startsWith('ask()'))!;
  const shell = spawn('sh', ['-euc', commands.text], { cwd: folder.path, env });
  let printed = '';
  for (const stream of [shell.stdout, shell.stderr]) stream.on('data', (data: Buffer) => (printed += data));
  await once(shell, 'close');
  expect(printed).toMatch(/"result":"accepted".*("result":"accepted"|"code":"too-late").*data: .*"type":"end"/s);
  expect(booked).toEqual([]);
});
