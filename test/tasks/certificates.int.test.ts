import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { TLSSocket } from 'node:tls';
import { createTaskStore } from '@whoa/tasks';
import { expect, onTestFinished, test } from 'vitest';
import { createCertificate } from '../servers/certificates.ts';
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

test('a certificate of an unknown authority is named as the cause, with what to set', async () => {
  using folder = temporaryFolder();
  const { pem: _pem, ...files } = createCertificate(folder.path);
  const port = await startTlsPostgres(files);
  await using store = createTaskStore(`postgres://app:secret@127.0.0.1:${port}/agents?sslmode=verify-full`);
  const error = await store.sweep().catch((thrown: unknown) => thrown as Error);
  expect(error).toMatchObject({ code: 'STORE_BUSY' });
  expect((error as Error).message).toMatch(
    /^Postgres at 127\.0\.0\.1:\d+\/agents cannot be reached \(self-signed certificate.*\); .* 'sslrootcert=FILE' in the url or NODE_EXTRA_CA_CERTS=FILE/,
  );
  expect((error as Error).message).not.toMatch(/sweep|secret/);
});

test('a server that does not listen is named with the cause, and not with the request', async () => {
  await using store = createTaskStore('postgres://127.0.0.1:1/none');
  const message = await store.sweep().then(String, String);
  expect(message).toMatch(/cannot be reached.*\(connect ECONNREFUSED 127\.0\.0\.1:1[;)]/);
  expect(message).toContain('check that it runs and that the url is right');
});
