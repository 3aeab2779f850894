import { type StopMode, sleep } from '@whoa/core';
import { createVirtualWorld, flushMicrotasks } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { alterStore } from '../../../../test/tasks/altered-store.ts';
import { expireSessions } from '../../../../test/tasks/claimed.ts';
import { createTaskStore } from '../ledger/factory.ts';
import { createMemoryStore } from '../ledger/memory.ts';
import { createCancelMessage, createEventChannel } from '../run/channel.ts';
import { createRunner } from '../run/store-runner.ts';
import {
  type CancellationRegistry,
  type CancellationRegistryOptions,
  createCancellationRegistry,
  type Registration,
} from './registry.ts';

function setUp(options: Partial<CancellationRegistryOptions> = {}) {
  const world = createVirtualWorld();
  const store = options.store ?? createMemoryStore({ world });
  const open = (rest: Partial<CancellationRegistryOptions> = {}) => {
    const registry = createCancellationRegistry({ tenant: 'acme', world, ...options, store, ...rest });
    return registry;
  };
  return { world, store, open, registry: open() };
}

type Registered = Registration & { result: 'registered' };

async function registered(registry: CancellationRegistry, key = 'job'): Promise<Registered> {
  const registration = await registry.register({ key });
  expect(registration.result).toBe('registered');
  return registration as Registered;
}

test('registered work can be cancelled by its own key, from another registry, and reports it afterwards', async () => {
  const { registry, open } = setUp();
  const { token, setStatus } = await registered(registry, 'invoice 7');
  expect(await registry.isCancelled('invoice 7')).toBe(false);
  expect(await open().cancel('invoice 7', { message: 'user request' })).toMatchObject({ result: 'accepted' });
  expect(await registry.isCancelled('invoice 7')).toBe(true);
  await flushMicrotasks();
  expect(token.reason).toMatchObject({ message: 'user request' });
  const known = { key: 'invoice 7', reason: { message: 'user request' } };
  expect(await registry.get('invoice 7')).toMatchObject({ ...known, status: 'cancelling' });
  expect(await setStatus('cancelled')).toEqual({ result: 'set', status: 'cancelled' });
  expect(await open().get('invoice 7')).toMatchObject({ ...known, status: 'cancelled' });
  expect(await registry.cancel('invoice 7')).toEqual({ result: 'too-late', status: 'cancelled' });
});

test('work without a key gets one', async () => {
  const { registry } = setUp();
  const { key, taskId } = await registry.register();
  expect(await registry.get(key)).toMatchObject({ taskId, status: 'running' });
});

test('a lease is renewed in the background, however long the work takes', async () => {
  const { registry, world, store } = setUp({ leaseMs: 3_000 });
  const { token, setStatus } = await registered(registry);
  await using runner = createRunner({ store, world, agents: {} });
  await runner.serve();
  for (let i = 0; i < 100; i++) await world.clock.advance(1_000);
  expect(await registry.get('job')).toMatchObject({ status: 'running' });
  expect(token.isCancelled).toBe(false);
  expect(await setStatus('success')).toEqual({ result: 'set', status: 'success' });
});

test.each<StopMode>(['graceful', 'now', 'kill'])(
  'work that does not stop is never called cancelled, also not after a cancel with mode %s',
  async (mode) => {
    const { registry, world } = setUp({ leaseMs: 3_000 });
    const { token, setStatus } = await registered(registry);
    await registry.cancel('job', {}, { mode });
    await world.clock.advance(100_000);
    expect(await registry.get('job')).toMatchObject({ status: 'cancelling' });
    expect(await registry.isCancelled('job')).toBe(true);
    expect(token.level).toBe('kill');
    expect(await setStatus('success')).toEqual({ result: 'set', status: 'cancelled' });
  },
);

test('a status set twice counts once, and a cancel that was accepted cannot be overwritten', async () => {
  const { registry } = setUp();
  const { setStatus } = await registered(registry);
  await registry.cancel('job');
  expect(await setStatus('success')).toEqual({ result: 'set', status: 'cancelled' });
  expect(await setStatus('failed')).toEqual({ result: 'unchanged', status: 'cancelled' });
});

test('a key is worked on once at a time; afterwards it has ended', async () => {
  const { registry, open } = setUp();
  const { setStatus, taskId } = await registered(registry);
  const held = { key: 'job', taskId, result: 'held', status: 'running' };
  expect(await registry.register({ key: 'job' })).toEqual(held);
  expect(await open().register({ key: 'job' })).toEqual(held);
  await setStatus('failed');
  expect(await open().register({ key: 'job' })).toEqual({ ...held, result: 'ended', status: 'failed' });
});

test('work whose store cannot be reached is stopped before its lease ends, and can publish nothing more', async () => {
  const world = createVirtualWorld();
  const inner = createMemoryStore({ world });
  let isDown = false;
  const store = alterStore(inner, (name, call) =>
    isDown && name === 'heartbeat' ? Promise.reject(new Error('no route')) : call(),
  );
  const errors: unknown[] = [];
  const hooks = { 'store-error': ({ error }: { error: unknown }) => errors.push(error) };
  const registry = createCancellationRegistry({ store, tenant: 'acme', world, leaseMs: 3_000, hooks });
  const { token, setStatus } = await registered(registry);
  isDown = true;
  await world.clock.advance(2_000);
  expect(token.reason).toMatchObject({ kind: 'lease-lost' });
  await world.clock.advance(1_000);
  await expireSessions(inner, world, 3_000);
  const other = createCancellationRegistry({ store: inner, tenant: 'acme', world });
  await registered(other);
  expect(await setStatus('success')).toEqual({ result: 'refused' });
  expect(await other.get('job')).toMatchObject({ status: 'running' });
  expect(errors).not.toEqual([]);
});

test('disposing stops the work and returns it when it has stopped', async () => {
  const { registry, open } = setUp();
  const { token, setStatus } = await registered(registry);
  const stopped = new Promise((resolve) => token.onCancel(() => resolve(setStatus('cancelled'))));
  await registry[Symbol.asyncDispose]();
  expect(token.reason).toMatchObject({ kind: 'shutdown' });
  expect(await stopped).toEqual({ result: 'released' });
  expect((await open().register({ key: 'job' })).result).toBe('registered');
});

test('disposing does not wait for ever, and leaves its claim to work that continues until the lease ends', async () => {
  const { registry, open, store, world } = setUp({ leaseMs: 10_000 });
  const { setStatus } = await registered(registry);
  const disposed = registry[Symbol.asyncDispose]();
  await world.clock.advance(2_000);
  await disposed;
  expect(await open().register({ key: 'job' })).toMatchObject({ result: 'held', status: 'running' });
  expect(await setStatus('success')).toEqual({ result: 'refused' });
  await expireSessions(store, world, 10_000);
  expect((await open().register({ key: 'job' })).result).toBe('registered');
});

test('disposing a registry without work leaves nothing behind, and disposing twice changes nothing', async () => {
  const { registry, world } = setUp();
  const { setStatus } = await registered(registry);
  await setStatus('success');
  await registry[Symbol.asyncDispose]();
  await registry[Symbol.asyncDispose]();
  expect(world.clock.pending).toBe(0);
});

test('registered work also gets cancels from the event channel and the checker', async () => {
  const channel = createEventChannel();
  const asked: (string | undefined)[] = [];
  const cancellationChecker = (_id: string, { key }: { key?: string }) => {
    asked.push(key);
    return key === 'unwanted';
  };
  const { registry } = setUp({ channel, cancellationChecker });
  const [job, unwanted] = [await registered(registry), await registered(registry, 'unwanted')];
  expect(asked).toEqual(['job', 'unwanted']);
  expect(unwanted.token.reason).toMatchObject({ via: 'checker' });
  channel.emit(createCancelMessage({ tenant: 'acme', taskId: job.taskId }));
  await flushMicrotasks();
  expect(job.token.level).toBe('abort');
});

test('an agent’s task can be read and cancelled by its key, but not registered', async () => {
  const { registry, store, world } = setUp();
  const work = ({ token }: { token: Registered['token'] }) =>
    sleep(60_000, { clock: world.clock, token }).then(() => 'x');
  await using runner = createRunner({ store, world, agents: { assistant: work } });
  const running = runner.run({ tenant: 'acme', agent: 'assistant', input: 'hi', key: 'm1' });
  await flushMicrotasks();
  await expect(registry.register({ key: 'm1' })).rejects.toThrow(
    /^key: 'm1' belongs to a task of the agent 'assistant'/,
  );
  expect(await registry.cancel('m1', {}, { mode: 'now' })).toMatchObject({ result: 'accepted' });
  expect((await running).status).toBe('cancelled');
  expect(await registry.get('m1')).toMatchObject({ status: 'cancelled' });
});

test('a registry of another tenant, or on another store, sees nothing', async () => {
  const { registry, open } = setUp();
  await registered(registry);
  for (const foreign of [open({ tenant: 'other' }), setUp().registry]) {
    expect(await foreign.get('job')).toBeUndefined();
    expect(await foreign.isCancelled('job')).toBe(false);
    expect(await foreign.cancel('job')).toEqual({ result: 'not-found' });
  }
});

test('the factory makes the store a configuration names', async () => {
  await using store = createTaskStore('memory');
  expect(store.name).toBe('memory');
  await using postgres = createTaskStore({ backend: 'postgres', url: 'postgres://127.0.0.1:1/none' });
  expect(postgres.name).toBe('postgres');
  expect(() => createTaskStore({ backend: 'etcd' as 'memory' })).toThrow(/^backend: expected .memory. or .sqlite. or/);
  expect(() => createTaskStore({ backend: 'constructor' as 'memory' })).toThrow(
    /^backend: expected .memory. or .sqlite. or/,
  );
  const misspelt = { backend: 'sqlite', path: '/tmp/tasks.db' } as const;
  expect(() => createTaskStore(misspelt)).toThrow(/^path: unknown setting; the settings are .*file/);
});
