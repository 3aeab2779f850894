// Cancellation stores on real servers.
import { Redis } from 'ioredis';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createCancellationStore } from '../../packages/tasks/src/cancellations/cancellation-store.ts';
import { createMemoryStore } from '../../packages/tasks/src/ledger/memory.ts';
import { createRunner } from '../../packages/tasks/src/run/store-runner.ts';
import { type BorrowedServer, borrowPostgres, borrowRedis } from '../servers/borrow.ts';
import { startRedis } from '../servers/redis.ts';
import { testCancellationStore, until } from './cancellation-cases.ts';
import { TASK, untilCancelled } from './runner-set-up.ts';

const WEEK_MS = 7 * 86_400_000;

describe('on Redis', () => {
  let server: BorrowedServer;
  let client: Redis;
  beforeAll(async () => {
    server = await borrowRedis();
    client = new Redis(server.url);
  });
  afterAll(async () => {
    client.disconnect();
    await server[Symbol.asyncDispose]();
  });

  testCancellationStore('redis', {
    config: () => ({ backend: 'redis', url: server.url, prefix: 'mine' }),
    async expire(taskId) {
      await client.pexpireat(`mine:cancellation:${taskId}`, 1);
    },
    isShared: true,
  });

  test('redis: an entry is kept for a week after its last write', async () => {
    await using store = createCancellationStore({ backend: 'redis', url: server.url });
    await store.register('kept');
    await client.pexpire('whoa:cancellation:kept', 1_000_000);
    await store.cancel('kept');
    const leftMs = await client.pttl('whoa:cancellation:kept');
    expect(leftMs).toBeGreaterThan(WEEK_MS - 600_000);
    expect(leftMs).toBeLessThanOrEqual(WEEK_MS);
  });

  test('redis: work continues while the server is away, and a cancel is heard after its return', async () => {
    await using own = await startRedis();
    await using cancellations = createCancellationStore({ backend: 'redis', url: own.url });
    await using elsewhere = createCancellationStore({ backend: 'redis', url: own.url });
    const errors: unknown[] = [];
    const store = createMemoryStore();
    await using runner = createRunner({
      store,
      agents: { assistant: untilCancelled },
      cancellations,
      pollIntervalMs: 20,
      hooks: { 'checker-error': ({ error }) => errors.push(error) },
    });
    const { id, response } = await runner.start(TASK);
    while ((await elsewhere.get(id)) === undefined);
    await own.kill('SIGKILL');
    await expect(elsewhere.cancel(id)).rejects.toMatchObject({ code: 'UNKNOWN_OUTCOME' });
    await expect(elsewhere.isCancelled(id)).rejects.toMatchObject({ code: 'STORE_BUSY' });
    await until(() => errors.length >= 2);
    expect(runner.live).toBe(1);
    await own.start();
    await until(() =>
      elsewhere.cancel(id, 'user request').then(
        () => true,
        () => false,
      ),
    );
    expect((await response).status).toBe('cancelled');
    expect((await store.get({ tenant: TASK.tenant, id }))?.stop?.reason).toMatchObject({ message: 'user request' });
  });

  test('redis: a frozen server is given up after a second', async () => {
    await using own = await startRedis();
    await using cancellations = createCancellationStore({ backend: 'redis', url: own.url });
    await cancellations.register('task');
    own.process.kill('SIGSTOP');
    try {
      await expect(cancellations.isCancelled('task')).rejects.toMatchObject({ code: 'STORE_BUSY' });
      await expect(cancellations.cancel('task')).rejects.toMatchObject({ code: 'UNKNOWN_OUTCOME' });
    } finally {
      own.process.kill('SIGCONT');
    }
  });
});

describe('on Postgres', () => {
  let server: BorrowedServer;
  let client: pg.Client;
  beforeAll(async () => {
    server = await borrowPostgres();
    client = new pg.Client(server.url);
    await client.connect();
  });
  afterAll(async () => {
    await client.end();
    await server[Symbol.asyncDispose]();
  });

  testCancellationStore('postgres', {
    config: () => ({ backend: 'postgres', url: server.url }),
    async expire(taskId) {
      await client.query('UPDATE whoa_cancellations SET expires_at = 1 WHERE task = $1', [taskId]);
    },
    isShared: true,
  });

  test('postgres: processes that start at the same time make one table', async () => {
    const config = { backend: 'postgres', url: server.url, table: 'made_at_once' } as const;
    const stores = Array.from({ length: 8 }, () => createCancellationStore(config));
    await Promise.all(stores.map((store) => store.register('task')));
    for (const store of stores) await store[Symbol.asyncDispose]();
  });

  test('postgres: a listener whose connection was ended hears the next cancels', async () => {
    await using store = createCancellationStore({ backend: 'postgres', url: server.url });
    await using elsewhere = createCancellationStore({ backend: 'postgres', url: server.url });
    let told = 0;
    store.onCancel(() => told++);
    const ask = async (): Promise<void> => {
      const before = told;
      let i = 0;
      await until(async () => {
        await elsewhere.cancel(`asked ${before} ${i++}`);
        return told > before;
      });
    };
    await ask();
    await client.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN whoa%'");
    await ask();
  });

  test('postgres: what has expired is deleted', async () => {
    await using store = createCancellationStore({ backend: 'postgres', url: server.url, table: 'expiring' });
    await store.register('old');
    await client.query('UPDATE expiring SET expires_at = 1');
    await store.setStatus('new', 'success');
    const { rows } = await client.query('SELECT task FROM expiring');
    expect(rows).toEqual([{ task: 'new' }]);
  });
});
