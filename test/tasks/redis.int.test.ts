import { setTimeout as wait } from 'node:timers/promises';
import { createRedisStore, type Hint, type TaskRecord, type TaskStore } from '@whoa/tasks';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createCertificate } from '../servers/certificates.ts';
import { ask, type RedisServer, startRedis, startRedisCluster, startRedisSentinels } from '../servers/redis.ts';
import { temporaryFolder } from './child.ts';

const TENANT = 'acme';

async function create(store: TaskStore): Promise<TaskRecord> {
  const receipt = await store.create({ tenant: TENANT, agent: 'a', input: 'hello' });
  if (receipt.answer !== 'created') throw new Error(`not created: ${receipt.answer}`);
  return receipt.task;
}

async function running(store: TaskStore): Promise<TaskRecord> {
  const { id } = await create(store);
  const claim = await store.claim(id, 'w', 600_000);
  if (claim.answer !== 'claimed') throw new Error(`not claimed: ${claim.answer}`);
  return claim.task;
}

describe('a server that can be had', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis({ appendfsync: 'always' });
  });
  afterAll(() => server[Symbol.asyncDispose]());

  test('a server that was restarted is given the scripts again, and has everything', async () => {
    await using store = createRedisStore({ url: server.url, prefix: 'restart' });
    const { id } = await running(store);
    await store.append(id, 1, { after: 0, events: ['said'] });
    await server.kill('SIGKILL');
    await server.start();
    expect(await ask(server.port, 'SCRIPT', 'EXISTS', 'x')).toBe('0');
    expect(await store.cancel({ tenant: TENANT, id })).toMatchObject({ answer: 'accepted' });
    expect(await store.read({ tenant: TENANT, id })).toMatchObject([{ position: 1, event: 'said' }]);
  });

  test('a cancel whose answer is lost has an unknown outcome, and repeating it is safe', async () => {
    await using store = createRedisStore({ url: server.url, prefix: 'unknown', timeoutMs: 300 });
    const { id } = await running(store);
    const ref = { tenant: TENANT, id };
    server.process.kill('SIGSTOP');
    try {
      await expect(store.cancel(ref, { by: 'ann' })).rejects.toMatchObject({ code: 'UNKNOWN_OUTCOME' });
    } finally {
      server.process.kill('SIGCONT');
    }
    const again = await store.cancel(ref, { by: 'ann' });
    expect(again).toMatchObject({ answer: 'already', reason: { by: 'ann' } });
  });

  test('an append whose server died under it has an unknown outcome, and is written once', async () => {
    await using store = createRedisStore({ url: server.url, prefix: 'died' });
    const { id } = await running(store);
    server.process.kill('SIGSTOP');
    const appended = store.append(id, 1, { after: 0, events: ['one'] });
    const code = appended.then(
      () => 'answered',
      (error: { code: string }) => error.code,
    );
    await server.kill('SIGKILL');
    expect(await code).toBe('UNKNOWN_OUTCOME');
    await server.start();
    for (let i = 0; i < 2; i++) await store.append(id, 1, { after: 0, events: ['one'] });
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

  test('no server: nothing was changed, and the error says so in time', async () => {
    await using store = createRedisStore({ url: 'redis://127.0.0.1:1', timeoutMs: 200 });
    await expect(create(store)).rejects.toMatchObject({ code: 'STORE_BUSY' });
    await expect(store.watch({ worker: 'w' }, () => {})).rejects.toMatchObject({ code: 'STORE_BUSY' });
  });

  test.each([
    ['READONLY', ['REPLICAOF', '127.0.0.1', '1'], ['REPLICAOF', 'NO', 'ONE']],
    ['NOREPLICAS', ['CONFIG', 'SET', 'min-replicas-to-write', '1'], ['CONFIG', 'SET', 'min-replicas-to-write', '0']],
    ['OOM', ['CONFIG', 'SET', 'maxmemory', '1mb'], ['CONFIG', 'SET', 'maxmemory', '0']],
  ])('a server that answers %s changes nothing, and works again when it can', async (code, before, after) => {
    await using store = createRedisStore({ url: server.url, prefix: `not-${code}`, timeoutMs: 1_000 });
    const { id } = await running(store);
    const ref = { tenant: TENANT, id };
    await ask(server.port, ...before);
    try {
      await expect(store.cancel(ref)).rejects.toMatchObject({ code: 'STORE_BUSY' });
      await expect(store.cancel(ref)).rejects.toThrow(code);
      expect((await store.get(ref))?.status).toBe('running');
    } finally {
      await ask(server.port, ...after);
    }
    expect(await store.cancel(ref)).toMatchObject({ answer: 'accepted' });
  });

  test('an operation waits for a server that comes back in time', async () => {
    await using store = createRedisStore({ url: server.url, prefix: 'waits' });
    const { id } = await running(store);
    await ask(server.port, 'REPLICAOF', '127.0.0.1', '1');
    const cancelled = store.cancel({ tenant: TENANT, id });
    await ask(server.port, 'REPLICAOF', 'NO', 'ONE');
    expect(await cancelled).toMatchObject({ answer: 'accepted' });
  });

  test('after its retention nothing of a task is left, and its conversation goes in its own time', async () => {
    await using store = createRedisStore({
      url: server.url,
      prefix: 'gone',
      retentionMs: 50,
      conversationRetentionMs: 50,
    });
    const task = { tenant: TENANT, agent: 'a', input: 1, conversation: 'c', key: 'k' };
    const receipt = await store.create(task);
    const { id } = (receipt as { task: TaskRecord }).task;
    await store.claim(id, 'w', 60_000);
    await store.append(id, 1, { after: 0, events: ['x'] });
    await store.send({ tenant: TENANT, id }, { type: 'steer', message: 'x' });
    await store.finish(id, 1, { status: 'success', history: ['x'] });
    const keys = async (): Promise<string[]> => (await ask(server.port, 'KEYS', 'gone:*')).split(',').toSorted();
    await expect
      .poll(keys)
      .toEqual([
        'gone:{s0}:ended',
        'gone:{s0}:said:4:acme:c',
        'gone:{s0}:status:success:acme',
        'gone:{s0}:tenant:acme',
      ]);
    const next = await create(store);
    const left = ['due', `inputs:${next.id}`, 'status:init:acme', `task:${next.id}`, 'tenant:acme'];
    expect(await keys()).toEqual(left.map((key) => `gone:{s0}:${key}`).toSorted());
  });

  test('a name that is used again is a new task, whatever is left of the old one', async () => {
    await using store = createRedisStore({ url: server.url, prefix: 'again', retentionMs: 30 });
    const wanted = { tenant: TENANT, agent: 'a', input: 1, key: 'k' };
    for (let round = 0; round < 3; round++) {
      const receipt = await store.create(wanted);
      if (receipt.answer !== 'created') throw new Error(`round ${round}: ${receipt.answer}`);
      await store.claim(receipt.task.id, 'w', 60_000);
      await store.finish(receipt.task.id, 1, { status: 'success' });
      await expect.poll(() => store.get({ tenant: TENANT, id: receipt.task.id })).toBeUndefined();
    }
    await store.create(wanted);
    expect((await store.list({ tenant: TENANT })).tasks).toHaveLength(1);
    expect((await store.list({ tenant: TENANT, status: 'success' })).tasks).toHaveLength(0);
  });

  test('a user who may touch only its prefix is enough', async () => {
    const rules = [
      '~app:*',
      'resetchannels',
      '+@read',
      '+@write',
      '+@connection',
      '-@dangerous',
      '+eval',
      '+evalsha',
      '+time',
      '+info',
    ];
    await ask(server.port, 'ACL', 'SETUSER', 'app', 'on', '>p@ss:word', ...rules);
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

  test('the stream of a worker brings the order along, escalations too, and nothing else is taken for one', async () => {
    await using store = createRedisStore({ url: server.url, prefix: 'order' });
    const { id } = await running(store);
    const ref = { tenant: TENANT, id };
    const heard: Hint[] = [];
    await store.watch({ worker: 'w' }, (hint) => heard.push(hint));
    const orders: unknown[] = [];
    for (const how of ['graceful', 'now', 'kill'] as const) {
      await store.cancel(ref, { message: how }, { how, undo: how === 'kill' });
      orders.push({ epoch: 1, stop: (await store.get(ref))!.stop });
    }
    const admin = new Redis(server.port);
    await admin.xadd(
      'order:{s0}:inbox:w',
      '*',
      'type',
      'cancel',
      'id',
      id,
      'tenant',
      TENANT,
      'worker',
      'w',
      'order',
      '1 kill 0 0',
    );
    admin.disconnect();
    await expect.poll(() => heard.length).toBe(4);
    expect(heard.map((hint) => ('order' in hint ? hint.order : undefined))).toEqual([...orders, undefined]);
    expect(orders).toMatchObject(
      ['drain', 'abort', 'kill'].map((level) => ({ stop: { level, reason: { message: 'graceful' } } })),
    );
  });

  test('a listener that was away so long that its stream is gone is told to look at everything', async () => {
    await using store = createRedisStore({ url: server.url, prefix: 'away' });
    const heard = Promise.withResolvers<string>();
    await store.watch({ worker: 'w' }, ({ type }) => heard.resolve(type));
    const admin = new Redis(server.port);
    await admin.del('away:{s0}:inbox:w');
    await killInboxes(admin);
    admin.disconnect();
    expect(await heard.promise).toBe('resync');
  });

  test('3,000 cancels while the connection of the listener is killed every 100 ms: none is lost', async () => {
    await using store = createRedisStore({ url: server.url, prefix: 'lossy' });
    const heard = new Set<string>();
    await store.watch({ worker: 'w' }, (hint) => {
      if (hint.type === 'cancel') heard.add(hint.id);
      if (hint.type === 'resync') resyncs++;
    });
    let [resyncs, kills] = [0, 0];
    const ids: string[] = [];
    for (let i = 0; i < 3_000; i += 50) {
      const some = await Promise.all(Array.from({ length: 50 }, () => running(store)));
      ids.push(...some.map(({ id }) => id));
    }
    const admin = new Redis(server.port);
    const done = new AbortController();
    const killing = (async () => {
      while (!done.signal.aborted) {
        kills += await killInboxes(admin);
        await wait(100);
      }
    })();
    for (const id of ids) {
      await store.cancel({ tenant: TENANT, id }, {}, { how: 'kill' });
      await wait(1);
    }
    await expect.poll(() => heard.size, { timeout: 10_000 }).toBe(3_000);
    done.abort();
    await killing;
    admin.disconnect();
    console.log({ cancels: ids.length, heard: heard.size, kills, resyncs });
    expect(kills).toBeGreaterThan(20);
    expect(resyncs).toBe(0);
  });
});

test("an address that begins with rediss:// is spoken to in TLS, and a stranger's certificate is refused", async () => {
  using folder = temporaryFolder();
  const { pem, ...tls } = createCertificate(folder.path);
  await using server = await startRedis({ tls });
  const url = server.tlsUrl!;
  await using store = createRedisStore({ url, tls: { ca: pem } });
  const { id } = await running(store);
  expect(await store.cancel({ tenant: TENANT, id })).toMatchObject({ answer: 'accepted' });
  await using stranger = createRedisStore({ url, timeoutMs: 300 });
  await expect(create(stranger)).rejects.toMatchObject({ code: 'STORE_BUSY' });
});

test('a failover moves the store and its listeners to the new master', async () => {
  await using sentinels = await startRedisSentinels();
  const place = { url: sentinels.urls, sentinel: { name: sentinels.name }, timeoutMs: 20_000 };
  await using store = createRedisStore({ ...place, replicas: { atLeast: 1 } });
  const { id } = await running(store);
  const heard = Promise.withResolvers<void>();
  await store.watch({ worker: 'w' }, ({ type }) => (type === 'cancel' || type === 'resync') && heard.resolve());
  await sentinels.master.kill('SIGKILL');
  // There is no second replica to wait for now, so another client without that wish cancels.
  await using other = createRedisStore(place);
  expect(await other.cancel({ tenant: TENANT, id })).toMatchObject({ answer: 'accepted' });
  await heard.promise;
  const alone = store.renew(id, 1, 600_000);
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

test('a node of a Cluster that is taken for a single server says what to do', async () => {
  await using cluster = await startRedisCluster();
  const errors: string[] = [];
  for (const url of cluster.urls) {
    await using store = createRedisStore({ url, timeoutMs: 1_000 });
    await create(store).catch((error: Error) => errors.push(error.message));
  }
  expect(errors).toHaveLength(2);
  for (const message of errors) expect(message).toContain('cluster: true');
});

async function killInboxes(admin: Redis): Promise<number> {
  const clients = String(await admin.call('CLIENT', 'LIST')).split('\n');
  const ids = clients.filter((line) => line.includes('name=whoa-inbox')).map((line) => /id=(\d+)/.exec(line)![1]!);
  for (const id of ids) await admin.call('CLIENT', 'KILL', 'ID', id);
  return ids.length;
}
