import { PassThrough } from 'node:stream';
import { afterEach, expect, test } from 'vitest';
import { testAgent } from '../../../test/acp/agent.ts';
import { watchMessages } from '../../../test/acp/editor.ts';
import type { AcpOptions } from './options.ts';
import { serveAcp } from './serve.ts';

const opened: { close: () => Promise<unknown> }[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((connection) => connection.close()));
});

const line = (message: object): string => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`;
const hello = (id: unknown, params: object): string => line({ id, method: 'initialize', params });

function open(more: Partial<AcpOptions> = {}) {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const connection = serveAcp(testAgent('none', more), { input, output });
  opened.push(connection);
  const watch = watchMessages(output);
  const answer = (id: unknown) => watch.waitFor((message) => message.id === id && message.method === undefined);
  return { ...watch, input, connection, answer };
}

const HELLOS: Record<string, object> = {
  'with nothing but its version': { protocolVersion: 1 },
  'of an editor': {
    protocolVersion: 1,
    clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: true, _meta: { x: 1 } },
    clientInfo: { name: 'zed', title: 'Zed', version: '1' },
  },
  'with parts that make no sense': { protocolVersion: 1, clientCapabilities: 7, clientInfo: [], _meta: 'no', more: {} },
};

test.each(Object.entries(HELLOS))('a hello %s is answered as the library would answer it', async (_, params) => {
  const terminal = { id: 'login', name: 'Log in', terminal: { args: ['login'], env: { A: 'b' } } };
  const { input, answer } = open({ authMethods: [{ id: 'key', name: 'A key', description: 'Set it.' }, terminal] });
  input.write(hello(1, params));
  const ours = await answer(1);
  // The library takes a second one as well, and answers it by itself.
  input.write(hello('again', params));
  const theirs = await answer('again');
  expect(ours).toEqual({ ...theirs, id: 1 });
});

test('initialize is answered once, and requests behind it in the same chunk are answered in order', async () => {
  const { input, answer, messages } = open();
  const request = { cwd: '/tmp', mcpServers: [] };
  input.write(
    hello(1, { protocolVersion: 1 }) +
      line({ id: 2, method: 'session/new', params: request }) +
      line({ id: 1, method: 'session/new', params: request }) +
      line({ id: 3, method: 'nobody/knows' }),
  );
  await Promise.all([answer(2), answer(3)]);
  const sessions = messages.filter(({ result }) => result?.['sessionId'] !== undefined);
  expect(sessions.map(({ id }) => id)).toEqual([2, 1]);
  expect(messages.filter(({ id, result }) => id === 1 && result?.['protocolVersion'] === 1)).toHaveLength(1);
  expect(messages[0]?.result).toMatchObject({ protocolVersion: 1 });
});

test('more than is held behind a hello is read when it can be handled', async () => {
  const { input, answer } = open();
  input.write(hello(0, { protocolVersion: 1 }));
  for (let id = 1; id <= 1_000; id++) input.write(line({ id, method: 'nobody/knows' }));
  expect((await answer(1_000)).error).toMatchObject({ code: -32601 });
});

test('an end right behind the hello ends the connection, and the hello is answered', async () => {
  const { input, connection, messages } = open();
  input.end(hello(1, { protocolVersion: 1 }) + line({ id: 2, method: 'session/new', params: {} }));
  expect(await connection.closed).toEqual({ by: 'client' });
  expect(messages.map(({ id }) => id)).toEqual([1]);
});

test('a close from our side while everything is still loading opens nothing any more', async () => {
  let made = 0;
  const { input, connection, answer, messages } = open({
    createAgent: () => {
      made++;
      throw new Error('too late');
    },
  });
  input.write(hello(1, { protocolVersion: 1 }) + line({ id: 2, method: 'session/new', params: { cwd: '/tmp' } }));
  await answer(1);
  expect(await connection.close()).toEqual({ by: 'agent' });
  expect(made).toBe(0);
  expect(messages.map(({ id }) => id)).toEqual([1]);
});
