// The rules as functions on the server: who loads them, who may not, and recovery when they are gone.
import { migrateStore, type TaskStore } from '@whoa/tasks';
import { createRedisStore } from '@whoa/tasks/internal';
import { createRedisStoreKind } from '@whoa/tasks/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { LIBRARY } from '../../packages/tasks/src/stores/redis/library.ts';
import { ask, type RedisServer, startRedis, startRedisCluster } from '../servers/redis.ts';
import { BUSY_MS, expectContract } from './contract/expect-contract.ts';
import { claim, create, running } from './held-task.ts';

const TENANT = 'acme';
const OLD = 'whoa_0123456789abcdef';

const toSource = (name: string): string => `#!lua name=${name}\nredis.register_function('${name}_f', function() end)`;

async function getLibraries(port: number): Promise<readonly string[]> {
  return [...(await ask(port, 'FUNCTION', 'LIST')).matchAll(/library_name,(\w+)/g)].map(([, name]) => name!).toSorted();
}

/** How often clients called functions, loaded them, or sent a script, since the last reset. */
async function getCalls(port: number): Promise<{ calls: number; loads: number; scripts: number }> {
  const stats = await ask(port, 'INFO', 'commandstats');
  const count = (names: string): number =>
    [...stats.matchAll(new RegExp(`^cmdstat_(?:${names}):calls=(\\d+)`, 'gm'))].reduce(
      (sum, [, calls]) => sum + Number(calls),
      0,
    );
  return { calls: count('fcall|fcall_ro'), loads: count('function\\|load'), scripts: count('eval|evalsha') };
}

describe('on one server', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis({ appendfsync: 'none' });
  });
  afterAll(() => server[Symbol.asyncDispose]());
  beforeEach(async () => {
    await ask(server.port, 'CONFIG', 'SET', 'maxmemory', '0');
    await ask(server.port, 'FUNCTION', 'FLUSH');
    await ask(server.port, 'CONFIG', 'RESETSTAT');
  });

  const open = (prefix: string): TaskStore => createRedisStore({ url: server.url, prefix });

  async function openAs(prefix: string, ...rights: readonly string[]): Promise<TaskStore> {
    const common = [`~${prefix}:*`, 'resetchannels', `&${prefix}:*`, '+@read', '+@write', '+@pubsub', '+@connection'];
    const rules = [...common, '-@dangerous', '-@scripting', '+time', '+info', ...rights];
    await ask(server.port, 'ACL', 'SETUSER', prefix, 'reset', 'on', '>secret', ...rules);
    const url = `redis://${prefix}:secret@127.0.0.1:${server.port}`;
    return createRedisStore({ url, prefix, timeoutMs: 2_000 });
  }

  test('the first process loads the library once, however much it is asked, and others find it', async () => {
    await using store = open('first');
    await Promise.all(Array.from({ length: 64 }, () => create(store)));
    await using other = open('first');
    await Promise.all(Array.from({ length: 64 }, () => create(other)));
    expect(await getLibraries(server.port)).toEqual([LIBRARY.name]);
    expect(await getCalls(server.port)).toMatchObject({ loads: 1, scripts: 0 });
  });

  test('two processes that load it at the same time do not disturb each other', async () => {
    const stores = Array.from({ length: 8 }, () => open('race'));
    const tasks = await Promise.all(stores.map((store) => create(store)));
    expect(new Set(tasks.map(({ id }) => id)).size).toBe(8);
    expect(await getCalls(server.port)).toMatchObject({ scripts: 0 });
    for (const store of stores) await store[Symbol.asyncDispose]();
  });

  test('a library that is removed during a run is loaded again, with one more trip', async () => {
    await using store = open('removed');
    const { ref } = await running(store);
    await ask(server.port, 'FUNCTION', 'FLUSH');
    await ask(server.port, 'CONFIG', 'RESETSTAT');
    expect(await store.cancel(ref)).toMatchObject({ result: 'accepted' });
    // The call that was refused; then the library and the call, sent together.
    expect(await getCalls(server.port)).toEqual({ calls: 2, loads: 1, scripts: 0 });
    expect(await store.get(ref)).toMatchObject({ status: 'cancelling' });
    expect(await getCalls(server.port)).toEqual({ calls: 3, loads: 1, scripts: 0 });
  });

  test('an operation that fails half-way leaves nothing to the next one', async () => {
    await using store = open('half');
    await create(store);
    // The take has held the task when it counts it.
    await ask(server.port, 'SET', 'half:{s0}:running', 'no hash');
    const about = { domain: 0, session: 's', worker: 'w', leaseMs: 60_000, claim: 'c', limit: 1 };
    await expect(store.take({ ...about, takeNumber: 1, agents: ['a'] })).rejects.toThrow('WRONGTYPE');
    await ask(server.port, 'DEL', 'half:{s0}:running');
    const other = await create(store, { agent: 'b' });
    const by = await claim(store, other.id);
    expect(await ask(server.port, 'HGET', `half:{s0}:held:${by.session}`, other.id)).toBe('1');
    expect(await ask(server.port, 'HGET', 'half:{s0}:running', 'b')).toBe('1');
    expect(await store.cancel(other)).toMatchObject({ result: 'accepted', status: 'cancelling' });
  });

  test('a server without memory that has lost the library still stops tasks, and gets it when it has some', async () => {
    await using store = open('memory');
    const [one, two] = [await running(store), await running(store)];
    await ask(server.port, 'FUNCTION', 'FLUSH');
    await ask(server.port, 'CONFIG', 'SET', 'maxmemory', '1mb');
    expect(await store.cancel(one.ref)).toMatchObject({ result: 'accepted' });
    expect(await getLibraries(server.port)).toEqual([]);
    await ask(server.port, 'CONFIG', 'SET', 'maxmemory', '0');
    expect(await store.cancel(two.ref)).toMatchObject({ result: 'accepted' });
    expect(await getLibraries(server.port)).toEqual([LIBRARY.name]);
  });

  test('a user who may load functions needs no scripts', async () => {
    await using store = await openAs('loads', '+fcall', '+fcall_ro', '+function|load');
    const { ref } = await running(store);
    expect(await store.cancel(ref)).toMatchObject({ result: 'accepted' });
    expect(await getCalls(server.port)).toMatchObject({ loads: 1, scripts: 0 });
  });

  test('a user who may only call functions uses what another has loaded', async () => {
    await migrateStore({ backend: 'redis', url: server.url, prefix: 'calls' });
    await ask(server.port, 'CONFIG', 'RESETSTAT');
    await using store = await openAs('calls', '+fcall', '+fcall_ro');
    const { ref } = await running(store);
    expect(await store.cancel(ref)).toMatchObject({ result: 'accepted' });
    expect(await getCalls(server.port)).toMatchObject({ loads: 0, scripts: 0 });
  });

  test.each([
    ['load', ['+fcall', '+fcall_ro']],
    ['call', []],
  ])('a user who may not %s functions uses scripts, and asks for functions once', async (what, rights) => {
    await using store = await openAs(`no-${what}`, '+eval', '+evalsha', ...rights);
    const { ref } = await running(store);
    const { calls, loads } = await getCalls(server.port);
    expect(calls).toBeLessThanOrEqual(2);
    expect(await store.cancel(ref)).toMatchObject({ result: 'accepted' });
    expect(await store.get(ref)).toMatchObject({ status: 'cancelling' });
    expect(await getCalls(server.port)).toMatchObject({ calls, loads });
    expect(await getLibraries(server.port)).toEqual([]);
  });

  test('a user who may use neither functions nor scripts gets that error immediately', async () => {
    await using store = await openAs('neither');
    await expect(create(store)).rejects.toThrow(/^NOPERM .*evalsha/);
  });

  test('the end of a migration removes the libraries of other versions, and nothing else', async () => {
    const others = ['whoa_mine', 'another', OLD];
    for (const name of others) await ask(server.port, 'FUNCTION', 'LOAD', toSource(name));
    const config = { backend: 'redis', url: server.url, prefix: 'end' } as const;
    for (const mode of ['plan', 'prepare'] as const) await migrateStore(config, mode);
    expect(await getLibraries(server.port)).toEqual(['another', OLD, LIBRARY.name, 'whoa_mine'].toSorted());
    for (let i = 0; i < 2; i++) await migrateStore(config, 'finish');
    expect(await getLibraries(server.port)).toEqual(['another', LIBRARY.name, 'whoa_mine'].toSorted());
  });

  test('the end of a migration by a user who may not remove libraries leaves them', async () => {
    await ask(server.port, 'FUNCTION', 'LOAD', toSource(OLD));
    const rights = ['+@all', '-function|list', '-function|delete'];
    await ask(server.port, 'ACL', 'SETUSER', 'weak', 'reset', 'on', '>secret', '~*', '&*', ...rights);
    const url = `redis://weak:secret@127.0.0.1:${server.port}`;
    expect(await migrateStore({ backend: 'redis', url, prefix: 'weak' }, 'finish')).toMatchObject({ format: 1 });
    expect(await getLibraries(server.port)).toContain(OLD);
  });

  test('scripts keep the whole contract, too', async () => {
    await ask(server.port, 'ACL', 'SETUSER', 'scripts', 'on', '>secret', '~*', '&*', '+@all', '-fcall', '-fcall_ro');
    const url = `redis://scripts:secret@127.0.0.1:${server.port}`;
    const setField = (...field: [key: string, field: string, value: string]) => ask(server.port, 'HSET', ...field);
    await expectContract(createRedisStoreKind('redis, scripts', { url, timeoutMs: BUSY_MS }, { setField }));
    expect(await getLibraries(server.port)).toEqual([]);
  });
});

test('every master of a Cluster has the library, and one that takes over has it already', async () => {
  await using cluster = await startRedisCluster({ replicas: true });
  const config = { url: cluster.urls, cluster: true, shards: 16 } as const;
  await using store = createRedisStore({ ...config, timeoutMs: 20_000 });
  const tasks = await Promise.all(Array.from({ length: 40 }, () => create(store)));
  const [first, second] = await cluster.masters();
  for (const { port } of await cluster.masters()) expect(await getLibraries(port)).toEqual([LIBRARY.name]);
  await expect.poll(() => ask(first!.port, 'WAIT', '1', '1000')).toBe('1');
  await cluster.failOver(first!);
  const ports = (await cluster.masters()).map(({ port }) => port);
  for (const port of ports) await ask(port, 'CONFIG', 'RESETSTAT');
  const cancel = (some: typeof tasks): Promise<unknown[]> =>
    Promise.all(some.map(({ id }) => store.cancel({ tenant: TENANT, id })));
  await cancel(tasks.slice(0, 20));
  for (const port of ports) expect(await getCalls(port)).toMatchObject({ loads: 0, scripts: 0 });
  // One of them loses it.
  await ask(second!.port, 'FUNCTION', 'FLUSH');
  await cancel(tasks.slice(20));
  expect(await getCalls(second!.port)).toMatchObject({ loads: 1, scripts: 0 });
  for (const port of ports) await ask(port, 'FUNCTION', 'LOAD', toSource(OLD));
  await migrateStore({ backend: 'redis', ...config }, 'finish');
  for (const port of ports) expect(await getLibraries(port)).toEqual([LIBRARY.name]);
  const { tasks: left } = await store.list({ tenant: TENANT, status: 'cancelled' });
  expect(left).toHaveLength(40);
});
