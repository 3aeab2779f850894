import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { createRedisStore } from '@whoa/tasks/internal';
import type { Hint } from '@whoa/tasks/store';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LIBRARY } from '../../packages/tasks/src/stores/redis/library.ts';
import { ROOT } from '../docs/pages.ts';
import { createCertificate } from '../servers/certificates.ts';
import { ask, type RedisServer, startRedis, startRedisCluster, startRedisSentinels } from '../servers/redis.ts';
import { temporaryFolder } from './child.ts';
import { claim, create, running } from './held-task.ts';

const TENANT = 'acme';

describe('a server that can be had', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis({ appendfsync: 'always' });
  });
  afterAll(() => server[Symbol.asyncDispose]());

  test('a server that was restarted has everything, and the functions too', async () => {
    await using store = createRedisStore({ url: server.url, prefix: 'restart' });
    const { id, by } = await running(store);
    await store.append(by, { after: 0, events: ['said'] });
    await server.kill('SIGKILL');
    await server.start();
    expect(await ask(server.port, 'FUNCTION', 'LIST')).toContain(LIBRARY.name);
    expect(await store.cancel({ tenant: TENANT, id })).toMatchObject({ result: 'accepted' });
    expect(await store.read({ tenant: TENANT, id })).toMatchObject([{ position: 1, event: 'said' }]);
  });

  test('a ready queue whose last task was claimed by its id lets no other ready queue be served too early', async () => {
    await using store = createRedisStore({ url: server.url, prefix: 'ready-queues' });
    const gone = await create(store, { agent: 'b' });
    await claim(store, gone.id);
    await store.create({ tenant: 'other', agent: 'b', input: 'first' }, { nonce: 'first' });
    await store.create({ tenant: TENANT, agent: 'a', input: 'second' }, { nonce: 'second' });
    const about = { domain: 0, session: 's', worker: 'w', leaseMs: 60_000, agents: ['a', 'b'], claim: 'c', limit: 1 };
    const first = await store.take({ ...about, takeNumber: 1 });
    expect(first).toMatchObject({ tasks: [{ load: { inputs: ['first'] } }] });
  });

  test('a cancel whose answer is lost has an unknown outcome, and repeating it is safe', async () => {
    await using store = createRedisStore({ url: server.url, prefix: 'unknown', timeoutMs: 3_000 });
    const { ref } = await running(store);
    server.process.kill('SIGSTOP');
    try {
      await expect(store.cancel(ref, { by: 'ann' })).rejects.toMatchObject({ code: 'UNKNOWN_OUTCOME' });
    } finally {
      server.process.kill('SIGCONT');
    }
    const again = await store.cancel(ref, { by: 'ann' });
    // Data in the old connection may or may not have been read.
    expect(again.result).toMatch(/^(unchanged|accepted)$/);
    expect(again).toMatchObject({ status: 'cancelling', reason: { by: 'ann' } });
  });

  test('an append whose server died under it has an unknown outcome, and is written once', async () => {
    await using store = createRedisStore({ url: server.url, prefix: 'died' });
    const { id, by } = await running(store);
    server.process.kill('SIGSTOP');
    const appended = store.append(by, { after: 0, events: ['one'] });
    const code = appended.then(
      () => 'answered',
      (error: { code: string }) => error.code,
    );
    await server.kill('SIGKILL');
    expect(await code).toBe('UNKNOWN_OUTCOME');
    await server.start();
    for (let i = 0; i < 2; i++) await store.append(by, { after: 0, events: ['one'] });
    expect(await store.read({ tenant: TENANT, id })).toHaveLength(1);
  });

  test('a question whose answer is lost is asked again', async () => {
    await using store = createRedisStore({ url: server.url, prefix: 'asked' });
    const { id } = await create(store);
    server.process.kill('SIGSTOP');
    const asked = store.get({ tenant: TENANT, id });
    await server.kill('SIGKILL');
    await server.start();
    expect((await asked)?.status).toBe('init');
  });

  test('no server: nothing was changed, and the error reports it in time', async () => {
    await using store = createRedisStore({ url: 'redis://127.0.0.1:1', timeoutMs: 200 });
    await expect(create(store)).rejects.toMatchObject({ code: 'STORE_BUSY' });
    await expect(store.watch({ worker: 'w' }, () => {})).rejects.toMatchObject({ code: 'STORE_BUSY' });
  });

  test.each([
    ['READONLY', ['REPLICAOF', '127.0.0.1', '1'], ['REPLICAOF', 'NO', 'ONE']],
    ['NOREPLICAS', ['CONFIG', 'SET', 'min-replicas-to-write', '1'], ['CONFIG', 'SET', 'min-replicas-to-write', '0']],
  ])('a server that answers %s changes nothing, and works again when it can', async (code, before, after) => {
    await using store = createRedisStore({ url: server.url, prefix: `not-${code}`, timeoutMs: 1_000 });
    const { ref } = await running(store);
    await ask(server.port, ...before);
    try {
      await expect(store.cancel(ref)).rejects.toMatchObject({ code: 'STORE_BUSY' });
      await expect(store.cancel(ref)).rejects.toThrow(code);
      expect((await store.get(ref))?.status).toBe('running');
    } finally {
      await ask(server.port, ...after);
    }
    expect(await store.cancel(ref)).toMatchObject({ result: 'accepted' });
  });

  test('an operation waits for a server that comes back in time', async () => {
    await using store = createRedisStore({ url: server.url, prefix: 'waits' });
    const { id } = await running(store);
    await ask(server.port, 'REPLICAOF', '127.0.0.1', '1');
    const cancelled = store.cancel({ tenant: TENANT, id });
    await ask(server.port, 'REPLICAOF', 'NO', 'ONE');
    expect(await cancelled).toMatchObject({ result: 'accepted' });
  });

  test('a task leaves nothing after its retention, and its conversation is removed after its own', async () => {
    await using store = createRedisStore({
      url: server.url,
      prefix: 'gone',
      retentionMs: 50,
      conversationRetentionMs: 50,
    });
    const task = { tenant: TENANT, agent: 'a', input: 1, conversation: 'c', key: 'k' };
    const { ref, by } = await running(store, task);
    await store.append(by, { after: 0, events: ['x'] });
    await store.send(ref, { type: 'steer', message: 'x' });
    await store.finish(by, { status: 'success', history: ['x'] });
    const request = { domain: 0, session: 's', claim: 'c', worker: 'w', leaseMs: 60_000, agents: ['a'], limit: 1 };
    const keys = async (): Promise<string[]> => {
      // A worker that takes is asked to sweep, which removes data past its retention.
      const answer = await store.take({ ...request, takeNumber: 1 });
      if (answer.result === 'taken' && answer.shouldSweep) await store.sweep();
      return (await ask(server.port, 'KEYS', 'gone:*')).split(',').toSorted();
    };
    const left = ['domain', 'layout', 'running', `session:${by.session}`, 'sessions'];
    const waits = ['waiters:*', 'waiters:a', 'idle-workers'];
    await expect.poll(keys).toEqual([...left, ...waits].map((key) => `gone:{s0}:${key}`).toSorted());
  });

  test('a name that is used again is a new task, whatever is left of the old one', async () => {
    await using store = createRedisStore({ url: server.url, prefix: 'again', retentionMs: 30 });
    const wanted = { tenant: TENANT, agent: 'a', input: 1, key: 'k' };
    for (let round = 0; round < 3; round++) {
      const receipt = await store.create(wanted);
      if (receipt.result !== 'created') throw new Error(`round ${round}: ${receipt.result}`);
      await store.finish(await claim(store, receipt.task.id), { status: 'success' });
      await expect.poll(() => store.get({ tenant: TENANT, id: receipt.task.id })).toBeUndefined();
    }
    await store.create(wanted);
    expect((await store.list({ tenant: TENANT })).tasks).toHaveLength(1);
    expect((await store.list({ tenant: TENANT, status: 'success' })).tasks).toHaveLength(0);
  });

  test('the rights on the page are enough, and reach no other prefix', async () => {
    const page = readFileSync(join(ROOT, 'docs/operations/redis.md'), 'utf8');
    const [command = ''] = /^ACL SETUSER.*$/m.exec(page) ?? [];
    await ask(server.port, ...command.replaceAll('whoa:', 'app:').replace('secret', 'p@ss:word').split(' '));
    const url = `redis://app:${encodeURIComponent('p@ss:word')}@127.0.0.1:${server.port}`;
    await using store = createRedisStore({ url, prefix: 'app', timeoutMs: 1_000 });
    const { id } = await running(store);
    const heard = Promise.withResolvers<string>();
    await store.watch({ worker: 'w' }, ({ type }) => heard.resolve(type));
    await store.cancel({ tenant: TENANT, id });
    expect(await heard.promise).toBe('cancel');
    await using other = createRedisStore({ url, prefix: 'other', timeoutMs: 1_000 });
    await expect(create(other)).rejects.toThrow(/NOPERM|No permissions|can't access/i);
  });

  test('the channel of a worker brings the order along, escalations too, and nothing else is taken for one', async () => {
    await using store = createRedisStore({ url: server.url, prefix: 'order' });
    const { id, ref, by } = await running(store);
    const heard: Hint[] = [];
    await store.watch({ worker: 'w' }, (hint) => heard.push(hint));
    const orders: unknown[] = [];
    for (const mode of ['graceful', 'now', 'kill'] as const) {
      await store.cancel(ref, { message: mode }, { mode, undo: mode === 'kill' });
      const { stop, orderNumber } = (await store.get(ref))!;
      // Signed for this task: a reader learns no claim, and cannot send it again for another task.
      const signature = createHash('sha1').update(`${by.claim} ${id}`).digest('hex');
      orders.push({ epoch: 1, claim: signature, orderNumber, stop });
    }
    const admin = new Redis(server.port);
    const forged = JSON.stringify(['cancel', id, TENANT, 'w', '', '1 kill 0 0']);
    await admin.spublish('order:{s0}:inbox:w', forged);
    admin.disconnect();
    await expect.poll(() => heard.length).toBe(4);
    expect(heard.map((hint) => ('order' in hint ? hint.order : undefined))).toEqual([...orders, undefined]);
    expect(orders).toMatchObject(
      ['drain', 'abort', 'kill'].map((level) => ({ stop: { level, reason: { message: 'graceful' } } })),
    );
  });

  test('1,000 cancels while the connection is killed every 100 ms: the listener gets each hint, or a resync', async () => {
    await using store = createRedisStore({ url: server.url, prefix: 'lossy' });
    await using other = createRedisStore({ url: server.url, prefix: 'lossy' });
    const [heard, cancelled] = [new Set<string>(), new Set<string>()];
    let [resyncs, kills] = [0, 0];
    const look = async (): Promise<void> => {
      for (const id of cancelled) {
        if (!heard.has(id) && (await other.get({ tenant: TENANT, id }))?.stop !== undefined) heard.add(id);
      }
    };
    const looking: Promise<void>[] = [];
    await store.watch({ worker: 'w' }, (hint) => {
      if (hint.type === 'cancel') heard.add(hint.id);
      if (hint.type !== 'resync') return;
      resyncs++;
      looking.push(look());
    });
    const ids: string[] = [];
    for (let i = 0; i < 1_000; i += 50) {
      const some = await Promise.all(Array.from({ length: 50 }, () => running(other)));
      ids.push(...some.map(({ id }) => id));
    }
    const admin = new Redis(server.port);
    const done = new AbortController();
    const killing = (async () => {
      while (!done.signal.aborted) {
        kills += await killListeners(admin);
        await wait(100);
      }
    })();
    for (const id of ids) {
      await other.cancel({ tenant: TENANT, id }, {}, { mode: 'kill' });
      cancelled.add(id);
      await wait(1);
    }
    done.abort();
    await killing;
    await expect.poll(() => heard.size, { timeout: 10_000 }).toBe(1_000);
    while (looking.length > 0) await looking.pop();
    admin.disconnect();
    console.log({ cancels: ids.length, heard: heard.size, kills, resyncs });
    expect(kills).toBeGreaterThan(5);
    expect(resyncs).toBeGreaterThan(5);
  });
});

test("an address that begins with rediss:// is spoken to in TLS, and a stranger's certificate is rejected", async () => {
  using folder = temporaryFolder();
  const { pem, ...tls } = createCertificate(folder.path);
  await using server = await startRedis({ tls });
  const url = server.tlsUrl!;
  await using store = createRedisStore({ url, tls: { ca: pem } });
  const { id } = await running(store);
  expect(await store.cancel({ tenant: TENANT, id })).toMatchObject({ result: 'accepted' });
  await using stranger = createRedisStore({ url, timeoutMs: 300 });
  await expect(create(stranger)).rejects.toMatchObject({ code: 'STORE_BUSY' });
});

test('a failover moves the store and its listeners to the new master', async () => {
  await using sentinels = await startRedisSentinels();
  const location = { url: sentinels.urls, sentinel: { name: sentinels.name }, timeoutMs: 20_000 };
  await using store = createRedisStore({ ...location, replicas: { atLeast: 1 } });
  const { id, by } = await running(store);
  const heard = Promise.withResolvers<void>();
  await store.watch({ worker: 'w' }, ({ type }) => (type === 'cancel' || type === 'resync') && heard.resolve());
  await sentinels.master.kill('SIGKILL');
  // There is no second replica to wait for now, so another client without that wish cancels.
  await using other = createRedisStore(location);
  expect(await other.cancel({ tenant: TENANT, id })).toMatchObject({ result: 'accepted' });
  await heard.promise;
  const alone = store.append(by, { after: 0, events: ['x'] });
  await expect(alone).rejects.toMatchObject({ code: 'UNKNOWN_OUTCOME' });
  expect(await sentinels.masterPort()).toBe(sentinels.replica.port);
});

test('a Cluster that is asked many things before its nodes are connected answers them all', async () => {
  await using cluster = await startRedisCluster();
  for (let i = 0; i < 10; i++) {
    await using store = createRedisStore({ url: cluster.urls, cluster: true, shards: 16, prefix: `first${i}` });
    await Promise.all(Array.from({ length: 20 }, () => create(store)));
    expect((await store.list({ tenant: TENANT })).tasks).toHaveLength(20);
  }
});

test('a Cluster node that is configured as a single server fails with what to do', async () => {
  await using cluster = await startRedisCluster();
  const errors: string[] = [];
  for (const url of cluster.urls) {
    await using store = createRedisStore({ url, timeoutMs: 1_000 });
    await create(store).catch((error: Error) => errors.push(error.message));
  }
  expect(errors).toHaveLength(2);
  for (const message of errors) expect(message).toContain('cluster: true');
});

/** Ends the connections that listen to something. */
async function killListeners(admin: Redis): Promise<number> {
  const clients = String(await admin.call('CLIENT', 'LIST')).split('\n');
  const ids = clients.filter((line) => / ssub=[1-9]/.test(line)).map((line) => /id=(\d+)/.exec(line)![1]!);
  for (const id of ids) await admin.call('CLIENT', 'KILL', 'ID', id);
  return ids.length;
}
