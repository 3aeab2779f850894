// How 'whoa serve' ends: not ready first, still accepting for a while, then closed.
import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { type RunningCommand, startCommand } from './process.ts';
import { createHome, type Home } from './terminal.ts';

const TOKEN = 'a-token-for-the-tests-of-the-drain';
const LONG = ['--drain', '3600'];

interface Serving {
  readonly server: RunningCommand;
  readonly url: string;
  /** Each request opens a connection, as a new client does. */
  readonly ask: (path: string) => Promise<Response>;
}

function openHome(config = ''): Home {
  const home = createHome({
    'script.json': '[["done"]]',
    'config/whoa/whoa.config.ts': `export default { ${config} };`,
  });
  onTestFinished(() => home[Symbol.dispose]());
  return home;
}

async function serve(args: readonly string[], config = ''): Promise<Serving> {
  const server = startCommand(openHome(config), ['serve', '--port', '0', ...args], { WHOA_TOKEN: TOKEN });
  const { url } = (await server.waitFor({ type: 'listening' })) as { url: string };
  const headers = { authorization: `Bearer ${TOKEN}`, connection: 'close' };
  return { server, url, ask: (path) => fetch(url + path, { headers }) };
}

test('after SIGTERM a server is not ready but accepts requests, and a second SIGTERM ends the wait', async () => {
  const { server, ask } = await serve(LONG);
  expect((await ask('/readyz')).status).toBe(200);
  server.kill('SIGTERM');
  expect(await server.waitFor({ type: 'draining' })).toEqual({ type: 'draining', drainMs: 3_600_000 });
  const ready = await ask('/readyz');
  expect(ready.status).toBe(503);
  expect(await ready.json()).toMatchObject({ error: { code: 'not-ready' } });
  expect((await ask('/healthz')).status).toBe(200);
  expect((await ask('/v1/tasks')).status).toBe(200);
  server.kill('SIGTERM');
  expect(await server.closed).toEqual([0, null]);
  await expect(ask('/healthz')).rejects.toThrow('fetch failed');
});

test('during the drain each response closes its connection, so that the client opens the next one elsewhere', async () => {
  const { server, url } = await serve(LONG);
  const agent = new Agent({ keepAlive: true });
  onTestFinished(() => agent.destroy());
  const ask = async (): Promise<string | undefined> => {
    const sent = request(`${url}/healthz`, { agent }).end();
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    await response.resume().toArray();
    return response.headers.connection;
  };
  expect(await ask()).toBe('keep-alive');
  server.kill('SIGTERM');
  await server.waitFor({ type: 'draining' });
  expect(await ask()).toBe('close');
});

test('the wait ends by itself', async () => {
  const { server } = await serve([], 'drainMs: 1');
  server.kill('SIGTERM');
  expect(await server.closed).toEqual([0, null]);
  expect(server.lines).toContainEqual({ type: 'draining', drainMs: 1 });
});

test.each([
  ['SIGINT', LONG],
  ['SIGHUP', LONG],
  ['SIGTERM', ['--drain', '0']],
] as const)('%s with %s ends a server without a drain', async (signal, args) => {
  const { server } = await serve(args);
  server.kill(signal);
  expect(await server.closed).toEqual([0, null]);
  expect(server.lines).not.toContainEqual(expect.objectContaining({ type: 'draining' }));
});

test('a request that is being sent when the server closes gets its response', async () => {
  const { server, url } = await serve(LONG);
  const body = JSON.stringify({ agent: 'assistant', input: 'hello' });
  const { hostname, port, host } = new URL(url);
  const socket = connect(Number(port), hostname);
  onTestFinished(() => void socket.destroy());
  socket.write(
    `POST /v1/tasks HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n`,
  );
  // The server has the request, and waits for its body.
  expect(String((await once(socket, 'data'))[0])).toContain('100 Continue');
  server.kill('SIGTERM');
  await server.waitFor({ type: 'draining' });
  server.kill('SIGTERM');
  await server.waitFor({ type: 'closing' });
  socket.write(body);
  const response = (await socket.toArray()).join('');
  expect(response).toContain('HTTP/1.1 201 Created');
  expect(await server.closed).toEqual([0, null]);
});

test('a stream is closed when the server closes, not before', async () => {
  const { server, url, ask } = await serve(LONG);
  const created = await fetch(`${url}/v1/tasks`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ agent: 'assistant', input: 'hello' }),
  });
  const { task } = (await created.json()) as { task: { id: string } };
  const events = await ask(`/v1/tasks/${task.id}/events`);
  let isOpen = true;
  const read = events
    .text()
    .catch(() => {})
    .finally(() => (isOpen = false));
  server.kill('SIGTERM');
  await server.waitFor({ type: 'draining' });
  expect((await ask('/v1/tasks')).status).toBe(200);
  expect(isOpen).toBe(true);
  server.kill('SIGTERM');
  await read;
  expect(await server.closed).toEqual([0, null]);
});
