// Every bus on its real server: what arrives, what a gap is, and that the servers may be away.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { appendFileSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { systemClock } from '@whoa/core/embed';
import { Redis } from 'ioredis';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Bus } from '../../../packages/tasks/src/bus/bus.ts';
import { FileBus } from '../../../packages/tasks/src/bus/file-bus.ts';
import { PostgresBus } from '../../../packages/tasks/src/bus/postgres-bus.ts';
import { createProcessBus } from '../../../packages/tasks/src/bus/process-bus.ts';
import { RedisBus } from '../../../packages/tasks/src/bus/redis-bus.ts';
import { sealBus } from '../../../packages/tasks/src/bus/sealed-bus.ts';
import { createCertificate } from '../../servers/certificates.ts';
import { freePort } from '../../servers/free-port.ts';
import { startPostgres } from '../../servers/postgres.ts';
import { startProxy } from '../../servers/proxy.ts';
import { startRedis } from '../../servers/redis.ts';
import { startRedisCluster } from '../../servers/redis-cluster.ts';

const SOON = { timeout: 20_000, interval: 10 };
const text = (message: Uint8Array): string => Buffer.from(message).toString();

interface Kind {
  readonly open: () => Bus;
  /** Kills the server, and starts it again. */
  readonly restart?: () => Promise<unknown>;
}

const kinds: Record<string, () => Promise<Kind & AsyncDisposable>> = {
  process: () => Promise.resolve({ open: createProcessBus, [Symbol.asyncDispose]: () => Promise.resolve() }),
  file: () => {
    const folder = mkdtempSync(join(tmpdir(), 'whoa-bus-'));
    const database = join(folder, 'tasks.db');
    writeFileSync(database, '');
    return Promise.resolve({
      open: () => new FileBus(database, 50),
      [Symbol.asyncDispose]: () => Promise.resolve(rmSync(folder, { recursive: true })),
    });
  },
  redis: async () => {
    const server = await startRedis({ appendfsync: 'none' });
    return {
      open: () => sealBus(new RedisBus({ url: server.url })),
      restart: () => server.kill('SIGKILL').then(() => server.start()),
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    };
  },
  'redis cluster': async () => {
    const cluster = await startRedisCluster();
    return {
      open: () => sealBus(new RedisBus({ url: cluster.urls, cluster: true })),
      [Symbol.asyncDispose]: () => cluster[Symbol.asyncDispose](),
    };
  },
  postgres: async () => {
    const server = await startPostgres();
    const pools = new Set<pg.Pool>();
    return {
      open() {
        const pool = new pg.Pool({ connectionString: server.url, max: 2 });
        pool.on('error', () => {});
        pools.add(pool);
        return new PostgresBus({
          server: { url: server.url, connectTimeoutMs: 5_000, statementTimeoutMs: 5_000 },
          clock: systemClock,
          pollIntervalMs: 1_000,
          notify: (channels, payloads) =>
            pool.query('SELECT pg_notify(c, p) FROM unnest($1::text[], $2::text[]) AS n (c, p)', [channels, payloads]),
        });
      },
      restart: () => server.restart('immediate'),
      async [Symbol.asyncDispose]() {
        await Promise.all([...pools].map((pool) => pool.end()));
        await server[Symbol.asyncDispose]();
      },
    };
  },
};

describe.each(Object.keys(kinds))('the %s bus', (name) => {
  let kind: Kind & AsyncDisposable;
  beforeAll(async () => {
    kind = await kinds[name]!();
  });
  afterAll(() => kind[Symbol.asyncDispose]());

  test('brings what was sent to an inbox after `receive` has resolved, and nothing to others', async () => {
    await using receiver = kind.open();
    await using other = kind.open();
    await using sender = kind.open();
    const [heard, heardByOther]: [string[], string[]] = [[], []];
    await receiver.receive((message) => heard.push(text(message)));
    await other.receive((message) => heardByOther.push(text(message)));
    sender.send(receiver.inbox, Buffer.from('one \0 ü'));
    await expect.poll(() => heard, SOON).toEqual(['one \0 ü']);
    sender.send(other.inbox, Buffer.from('two'));
    await expect.poll(() => heardByOther, SOON).toEqual(['two']);
    expect(heard).toHaveLength(1);
  });

  test('carries messages of any size in one piece, and drops what is too large', async () => {
    await using receiver = kind.open();
    await using sender = kind.open();
    const heard: number[] = [];
    await receiver.receive((message) => heard.push(message.length));
    const sizes = [0, 5_800, 5_950, 8_000, 200_000, 999_000];
    for (const size of [...sizes, 2_000_000]) sender.send(receiver.inbox, Buffer.alloc(size, 7));
    sender.send(receiver.inbox, Buffer.from('!'));
    await expect.poll(() => heard.at(-1), SOON).toBe(1);
    expect(heard.filter((size) => size < 1_500_000)).toEqual([...sizes, 1]);
  });

  test('a listener that throws keeps nothing from the others, and one that has left hears nothing', async () => {
    await using receiver = kind.open();
    await using sender = kind.open();
    const heard: string[] = [];
    const left = await receiver.receive(() => heard.push('left'));
    await receiver.receive((message) => heard.push(text(message)));
    left[Symbol.dispose]();
    sender.send(receiver.inbox, Buffer.from('x'));
    await expect.poll(() => heard, SOON).toEqual(['x']);
  });

  test('sending to an inbox that no one has is no error', async () => {
    await using sender = kind.open();
    for (const inbox of ['', 'nobody', `${sender.inbox}x`, '.', 'a.b']) sender.send(inbox, Buffer.from('x'));
  });

  test('reports a gap after its server was killed, and then hears again', async ({ skip }) => {
    if (kind.restart === undefined) return skip('no server to restart');
    await using receiver = kind.open();
    await using sender = kind.open();
    const heard: string[] = [];
    let gaps = 0;
    receiver.onGap(() => gaps++);
    await receiver.receive((message) => heard.push(text(message)));
    expect(gaps).toBe(0);
    await kind.restart();
    await expect.poll(() => gaps, SOON).toBe(1);
    await expect
      .poll(() => {
        sender.send(receiver.inbox, Buffer.from('again'));
        return heard.includes('again');
      }, SOON)
      .toBe(true);
  });
});

test('on Redis, others can read neither a message nor the inbox, and what they forge or change is ignored', async () => {
  await using server = await startRedis({ appendfsync: 'none' });
  await using receiver = sealBus(new RedisBus({ url: server.url }));
  await using sender = sealBus(new RedisBus({ url: server.url }));
  const spy = new Redis(server.url);
  const thief = new Redis(server.url);
  const seen: Buffer[] = [];
  spy.on('pmessageBuffer', (_pattern, _channel, message: Buffer) => seen.push(message));
  await spy.psubscribe('*');
  const heard: string[] = [];
  await receiver.receive((message) => heard.push(text(message)));
  const secret = randomUUID();
  for (let i = 0; i < 2; i++) sender.send(receiver.inbox, Buffer.from(secret));
  await expect.poll(() => heard, SOON).toEqual([secret, secret]);
  await expect.poll(() => seen.length, SOON).toBe(2);
  const [channel] = (await thief.pubsub('CHANNELS')) as string[];
  expect(receiver.inbox).toContain(channel);
  expect(receiver.inbox.length).toBeGreaterThan(channel!.length + 40);
  for (const message of seen) expect(message.includes(secret)).toBe(false);
  // Not even the same twice: each has its own nonce.
  expect(seen[0]!.subarray(44)).not.toEqual(seen[1]!.subarray(44));
  const changed = Buffer.from(seen[0]!);
  changed[changed.length - 1]! ^= 1;
  for (const forged of [changed, seen[0]!.subarray(0, 20), Buffer.from('[]'), Buffer.alloc(100)])
    await thief.publish(channel!, forged);
  // A message for one inbox does not open in another.
  await using other = sealBus(new RedisBus({ url: server.url }));
  const heardByOther: string[] = [];
  await other.receive((message) => heardByOther.push(text(message)));
  await thief.publish(other.inbox.slice(0, other.inbox.lastIndexOf('.')), seen[0]!);
  sender.send(other.inbox, Buffer.from('real'));
  sender.send(receiver.inbox, Buffer.from('last'));
  await expect.poll(() => [heard.at(-1), ...heardByOther], SOON).toEqual(['last', 'real']);
  expect(heard).toHaveLength(3);
  spy.disconnect();
  thief.disconnect();
});

test('a bus begins while its server is away, and listens as soon as it is there', async () => {
  await using server = await startRedis({ appendfsync: 'none' });
  await server.kill('SIGKILL');
  await using receiver = sealBus(new RedisBus({ url: server.url }));
  await using sender = sealBus(new RedisBus({ url: server.url }));
  const heard: string[] = [];
  const receiving = receiver.receive((message) => heard.push(text(message)));
  sender.send(receiver.inbox, Buffer.from('lost'));
  await server.start();
  await receiving;
  sender.send(receiver.inbox, Buffer.from('x'));
  await expect.poll(() => heard.at(-1), SOON).toBe('x');
});

test('over TLS, a bus on Redis uses only a server whose certificate it trusts', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'whoa-bus-'));
  const { key, cert, pem } = createCertificate(folder);
  const port = await freePort();
  const files = { 'tls-port': `${port}`, 'tls-cert-file': cert, 'tls-key-file': key, 'tls-auth-clients': 'no' };
  await using server = await startRedis({ appendfsync: 'none', config: Object.entries(files) });
  const url = `rediss://127.0.0.1:${port}`;
  await using receiver = sealBus(new RedisBus({ url }));
  await using sender = sealBus(new RedisBus({ url }));
  const heard: string[] = [];
  const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
  const receiving = receiver.receive((message) => heard.push(text(message)));
  const trusted = getCACertificates('default');
  const client = new Redis(server.url);
  sender.send(receiver.inbox, Buffer.from('to an unknown server'));
  const stranger = new Redis(url, { lazyConnect: true, retryStrategy: () => null });
  const refused = once(stranger, 'error');
  stranger.connect().catch(() => {});
  expect(String(await refused)).toContain('self-signed certificate');
  expect(await client.pubsub('CHANNELS')).toEqual([]);
  await expect.poll(() => warned.mock.calls.length, SOON).toBe(1);
  const [warning] = warned.mock.calls[0]!;
  expect(warning).toMatchObject({ detail: expect.stringMatching(/self-signed.*NODE_EXTRA_CA_CERTS/u) as string });
  setDefaultCACertificates([...trusted, pem]);
  await receiving;
  sender.send(receiver.inbox, Buffer.from('x'));
  await expect.poll(() => heard, SOON).toEqual(['x']);
  setDefaultCACertificates(trusted);
  // Once, however often it has tried.
  expect(warned).toHaveBeenCalledTimes(1);
  warned.mockRestore();
  client.disconnect();
  rmSync(folder, { recursive: true });
});

test('a slow receiver on Redis is cut off by the server, and looks at everything when it is back', async () => {
  await using server = await startRedis({
    appendfsync: 'none',
    config: [['client-output-buffer-limit', 'pubsub 256kb 0 0']],
  });
  await using receiver = sealBus(new RedisBus({ url: server.url }));
  await using sender = sealBus(new RedisBus({ url: server.url }));
  let gaps = 0;
  receiver.onGap(() => gaps++);
  await receiver.receive(() => {});
  sender.send(receiver.inbox, Buffer.alloc(900_000));
  await expect.poll(() => gaps, SOON).toBe(1);
});

test('on Redis, what exceeds 10,000 messages in flight is dropped', async () => {
  await using server = await startRedis({ appendfsync: 'none' });
  await using receiver = new RedisBus({ url: server.url });
  await using sender = new RedisBus({ url: server.url });
  const heard: number[] = [];
  await receiver.receive((message) => heard.push(Number(text(message))));
  let dropped = 0;
  for (let i = 0; i < 11_000; i++) if (!sender.send(receiver.inbox, Buffer.from(`${i}`))) dropped++;
  expect(dropped).toBe(1_000);
  await expect.poll(() => heard.length, SOON).toBeGreaterThanOrEqual(10_000);
  sender.send(receiver.inbox, Buffer.from('-1'));
  await expect.poll(() => heard.at(-1), SOON).toBe(-1);
  expect(heard).toEqual([...Array.from({ length: 10_000 }, (_, i) => i), -1]);
});

test('on Postgres, what exceeds 2,000 pieces that wait for a slow server is dropped', async () => {
  const sent: number[] = [];
  let dropped = 0;
  const slow = Promise.withResolvers<void>();
  {
    await using bus = new PostgresBus({
      server: { url: 'postgres://unused', connectTimeoutMs: 1_000, statementTimeoutMs: 1_000 },
      clock: systemClock,
      pollIntervalMs: 1_000,
      notify(channels) {
        sent.push(channels.length);
        return slow.promise;
      },
    });
    for (let i = 0; i < 3; i++) {
      for (let n = 0; n < 1_500; n++) if (!bus.send('inbox', Buffer.from('x'))) dropped++;
      await expect.poll(() => sent.length).toBe(1);
    }
    slow.resolve();
  }
  expect([sent, dropped]).toEqual([[1_500, 2_000], 1_000]);
});

test('a connection that went silent without an end is noticed, and its return is a gap', async () => {
  await using server = await startRedis({ appendfsync: 'none' });
  await using network = await startProxy({ host: '127.0.0.1', port: server.port });
  await using receiver = sealBus(new RedisBus({ url: `redis://127.0.0.1:${network.port}` }));
  const gap = Promise.withResolvers<void>();
  receiver.onGap(gap.resolve);
  await receiver.receive(() => {});
  network.freeze();
  await gap.promise;
  network.endFrozen();
});

test('the files of the bus take turns: nothing of what fits is lost, only two remain, and who is left behind hears of a gap', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'whoa-bus-'));
  const database = join(folder, 'tasks.db');
  writeFileSync(database, '');
  await using receiver = new FileBus(database, 20);
  await using slow = new FileBus(database, 0);
  await using idle = new FileBus(database, 1);
  await using sender = new FileBus(database, 20);
  const heard: number[] = [];
  await receiver.receive((message) => heard.push(Number(text(message.subarray(0, 8)))));
  let gaps = 0;
  slow.onGap(() => gaps++);
  await slow.receive(() => {});
  const body = '.'.repeat(50_000);
  for (let i = 0; i < 200; i++) {
    sender.send(receiver.inbox, Buffer.from(`${i}`.padEnd(8) + body));
    await expect.poll(() => heard.length, SOON).toBe(i + 1);
  }
  expect(heard).toEqual(Array.from({ length: 200 }, (_, i) => i));
  const files = readdirSync(folder).filter((name) => name.includes('-bus.'));
  expect(files.length).toBeLessThanOrEqual(2);
  appendFileSync(join(folder, files.at(-1)!), `\n${receiver.inbox} 40000 cut off`);
  idle.send(receiver.inbox, Buffer.from('200'));
  await expect.poll(() => heard.at(-1), SOON).toBe(200);
  expect(gaps).toBe(0);
  // As after a process was suspended while others began several files.
  writeFileSync(`${database}-bus.99`, '');
  slow.send(receiver.inbox, Buffer.from('lost'));
  expect(gaps).toBe(1);
  rmSync(folder, { recursive: true });
});
