import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { TLSSocket } from 'node:tls';
import { createTaskStore } from '@whoa/tasks';
import { expect, onTestFinished, test } from 'vitest';
import { createCertificate } from '../servers/certificates.ts';
import { startRedis } from '../servers/redis.ts';
import { temporaryFolder } from './child.ts';

/** Listens as Postgres does until a client has seen its certificate. */
async function startTlsPostgres(files: { readonly key: string; readonly cert: string }): Promise<number> {
  const [key, cert] = [readFileSync(files.key), readFileSync(files.cert)];
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => {
      socket.write('S');
      new TLSSocket(socket, { isServer: true, key, cert }).on('error', () => {});
    });
  });
  onTestFinished(() => void server.close());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as { port: number }).port;
}

test('a certificate of an unknown authority is named as the cause, with what to set, on Postgres and Redis', async () => {
  using folder = temporaryFolder();
  const { pem: _pem, ...files } = createCertificate(folder.path);
  await using redis = await startRedis({ tls: files });
  const port = await startTlsPostgres(files);
  for (const [store, words] of [
    [
      createTaskStore(`postgres://app:secret@127.0.0.1:${port}/agents?sslmode=verify-full`),
      /^Postgres at 127\.0\.0\.1:\d+\/agents cannot be reached \(self-signed certificate.*\); .* 'sslrootcert=FILE' in the url or NODE_EXTRA_CA_CERTS=FILE/,
    ],
    [
      createTaskStore({ backend: 'redis', url: redis.tlsUrl!, timeoutMs: 500 }),
      /^Redis cannot be reached within 500 ms \(self-signed certificate.*; .* `tls: \{ ca \}` of the store or NODE_EXTRA_CA_CERTS=FILE/,
    ],
  ] as const) {
    await using owned = store;
    const error = await owned.sweep().catch((thrown: unknown) => thrown as Error);
    expect(error).toMatchObject({ code: 'STORE_BUSY' });
    expect((error as Error).message).toMatch(words);
    expect((error as Error).message).not.toMatch(/sweep|secret/);
  }
});

test('a server that does not listen is named with the cause, and not with the request', async () => {
  for (const address of ['postgres://127.0.0.1:1/none', 'redis://127.0.0.1:1']) {
    await using store = createTaskStore(
      address.startsWith('redis') ? { backend: 'redis', url: address, timeoutMs: 300 } : address,
    );
    const message = await store.sweep().then(String, String);
    expect(message).toMatch(/cannot be reached.*\(connect ECONNREFUSED 127\.0\.0\.1:1[;)]/);
    expect(message).toContain('check that it runs and that the url is right');
  }
});
