import { mkdtempSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { NetworkRequest } from './options.ts';
import { startProxy } from './proxy.ts';

/** Asks the proxy for a name with these addresses, by both ways. Returns what the proxy reported. */
async function ask(...addresses: readonly string[]): Promise<NetworkRequest[]> {
  const folder = mkdtempSync(join(tmpdir(), 'whoa-proxy-'));
  const requests: NetworkRequest[] = [];
  const options = { allow: ['*.example.com'], onRequest: (one: NetworkRequest) => void requests.push(one) };
  const resolve = (): Promise<{ address: string }[]> => Promise.resolve(addresses.map((address) => ({ address })));
  const proxy = await startProxy(join(folder, 'socket'), options, resolve);
  try {
    for (const [method, path] of [
      ['GET', 'http://a.example.com/'],
      ['CONNECT', 'a.example.com:443'],
    ] as const) {
      await new Promise<void>((done, reject) => {
        const sent = request({ socketPath: proxy.socket, method, path, agent: false });
        const check = ({ statusCode }: { statusCode?: number | undefined }): void => {
          expect(statusCode).toBe(403);
          sent.destroy();
          done();
        };
        sent.once('response', check).once('connect', check).once('error', reject).end();
      });
    }
  } finally {
    await proxy[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  }
  return requests;
}

test.each([
  '127.0.0.1',
  '169.254.169.254',
  '192.0.0.192',
  '198.18.0.1',
  '64:ff9b::a9fe:a9fe',
  '2002:a9fe:a9fe::1',
  '::ffff:169.254.169.254',
  'fec0::1',
])('a listed name that resolves to %s is rejected', async (address) => {
  const reason = `it resolves to the internal address ${address}`;
  expect(await ask(address)).toMatchObject([
    { isAllowed: false, reason },
    { isAllowed: false, reason },
  ]);
});

test('every address of a name is checked', async () => {
  const reason = 'it resolves to the internal address 10.0.0.1';
  expect(await ask('8.8.8.8', '10.0.0.1')).toMatchObject([{ reason }, { reason }]);
});

test('a name without addresses is rejected', async () => {
  expect(await ask()).toMatchObject([{ reason: 'it has no address' }, { reason: 'it has no address' }]);
});
