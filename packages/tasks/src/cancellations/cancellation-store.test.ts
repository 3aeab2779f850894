import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CancellationToken } from '@whoa/core';
import { callTools, reply } from '@whoa/core/model';
import { createVirtualWorld, flushMicrotasks } from '@whoa/core/testing';
import { afterAll, describe, expect, test } from 'vitest';
import { testCancellationStore } from '../../../../test/tasks/cancellation-cases.ts';
import { readFirstId, scripted, setUp, TASK, tool, untilCancelled } from '../../../../test/tasks/runner-set-up.ts';
import { type CancellationStore, type CancellationStoreConfig, createCancellationStore } from './cancellation-store.ts';
import { KEPT_MS } from './entries.ts';

const world = createVirtualWorld();
const folder = mkdtempSync(join(tmpdir(), 'whoa-cancellations-'));
afterAll(() => rmSync(folder, { recursive: true }));

const expire = async (): Promise<void> => world.clock.advance(KEPT_MS);

testCancellationStore('memory', {
  config: () => ({ backend: 'memory', world }),
  expire,
  isShared: false,
});
testCancellationStore('sqlite', {
  config: () => ({ backend: 'sqlite', file: join(folder, 'cancellations.db'), world }),
  expire,
  isShared: true,
});

test.for<[CancellationStoreConfig, string]>([
  [{ backend: 'mongo' } as never, 'backend: expected'],
  [{ backend: 'sqlite' } as never, 'file: expected'],
  [{ backend: 'redis' } as never, 'url: expected'],
  [{ backend: 'redis', url: 'redis://localhost', prefix: 'a b' }, 'prefix: expected'],
  [{ backend: 'postgres', table: 'tasks; DROP TABLE tasks' }, 'table: expected'],
  [{ backend: 'memory', file: 'tasks.db' } as never, 'file: unknown setting'],
  ['redis://localhost' as never, 'options: expected an object'],
])('an invalid configuration is rejected: %j', ([config, message]) => {
  expect(() => createCancellationStore(config)).toThrow(message);
});

describe('a runner with cancellations', () => {
  /** Fails every call from now on. */
  function breakable(inner: CancellationStore): { store: CancellationStore; away: { error: Error | undefined } } {
    const away: { error: Error | undefined } = { error: undefined };
    const store = new Proxy(inner, {
      get: (target, name: keyof CancellationStore) =>
        away.error !== undefined && name !== 'onCancel' ? () => Promise.reject(away.error) : target[name],
    });
    return { store, away };
  }

  function setUpStore() {
    const { store: cancellations, away } = breakable(createCancellationStore({ backend: 'memory' }));
    return { cancellations, away };
  }

  test('a cancel stops the work immediately, without waiting for a poll', async () => {
    const { cancellations } = setUpStore();
    const { runner, store, world: own } = setUp({ work: untilCancelled, cancellations });
    const running = runner.run(TASK);
    await flushMicrotasks();
    const id = await readFirstId(store);
    expect(await cancellations.get(id)).toEqual({ taskId: id, status: 'running' });
    const before = own.clock.now();
    expect(await cancellations.cancel(id, 'user request')).toEqual({ result: 'set', status: 'cancelled' });
    expect((await running).status).toBe('cancelled');
    const record = await store.get({ tenant: TASK.tenant, id });
    expect(record?.stop?.reason).toMatchObject({ message: 'user request', via: 'checker' });
    expect(own.clock.now()).toBe(before);
    expect(await cancellations.cancel(id)).toEqual({ result: 'too-late', status: 'cancelled' });
  });

  test('a cancel that was not heard is read within a second', async () => {
    const { cancellations } = setUpStore();
    const deaf = new Proxy(cancellations, {
      get: (target, name: keyof CancellationStore) =>
        name === 'onCancel' ? () => ({ [Symbol.dispose]() {} }) : target[name],
    });
    const { runner, store, world: own } = setUp({ work: untilCancelled, cancellations: deaf });
    const running = runner.run(TASK);
    await flushMicrotasks();
    await cancellations.cancel(await readFirstId(store));
    await own.clock.advance(1_000);
    expect((await running).status).toBe('cancelled');
  });

  test('a task that was cancelled before it was registered does no work', async () => {
    const { cancellations } = setUpStore();
    const { runner, store } = setUp({ work: () => expect.unreachable(), cancellations });
    const receipt = await store.create(TASK);
    const { id } = (receipt as { task: { id: string } }).task;
    await cancellations.cancel(id);
    expect((await runner.runExisting({ tenant: 'acme', id })).status).toBe('cancelled');
  });

  test('it is asked whenever a checker is: after the claim, before each turn and each wave', async () => {
    const { cancellations } = setUpStore();
    let asked = 0;
    let checked = 0;
    const counted = new Proxy(cancellations, {
      get: (target, name: keyof CancellationStore) => {
        if (name !== 'register' && name !== 'isCancelled') return target[name];
        return (id: string, status: 'running') => {
          asked++;
          return target[name](id, status);
        };
      },
    });
    const read = tool('read', () => 'text');
    const { runner } = setUp({
      planner: scripted(
        () => callTools([{ id: 'a', tool: 'read', input: {} }]),
        () => reply('done'),
      ),
      tools: [read],
      cancellations: counted,
      cancellationChecker: () => ++checked < 0,
    });
    expect((await runner.run(TASK)).status).toBe('success');
    expect(checked).toBeGreaterThanOrEqual(4);
    expect(asked).toBe(checked);
  });

  test('while it cannot be read the work continues, each failure is reported, and a cancel is read afterwards', async () => {
    const { cancellations, away } = setUpStore();
    away.error = new Error('connect ECONNREFUSED');
    const { runner, store, events, world: own } = setUp({ work: untilCancelled, cancellations });
    const running = runner.run(TASK);
    await flushMicrotasks();
    const id = await readFirstId(store);
    await own.clock.advance(1_000);
    const failures = events.filter(({ type }) => type === 'checker-error');
    expect(failures).toEqual([
      { type: 'checker-error', id, error: away.error },
      { type: 'checker-error', id, error: away.error },
    ]);
    expect(runner.live).toBe(1);
    away.error = undefined;
    await cancellations.cancel(id);
    await own.clock.advance(1_000);
    expect((await running).status).toBe('cancelled');
    expect(await cancellations.get(id)).toMatchObject({ status: 'cancelled' });
  });

  test('a final status that cannot be written is reported, and the response is the store’s', async () => {
    const { cancellations, away } = setUpStore();
    const { runner, events } = setUp({
      work: () => {
        away.error = new Error('connect ECONNREFUSED');
        return Promise.resolve('done');
      },
      cancellations,
    });
    expect((await runner.run(TASK)).status).toBe('success');
    expect(events.filter(({ type }) => type === 'checker-error')).toHaveLength(1);
  });

  test('a task that was cancelled in the ledger ends as cancelled here too', async () => {
    const { cancellations } = setUpStore();
    const { runner, store } = setUp({ work: untilCancelled, cancellations });
    const token = new CancellationToken();
    const running = runner.run(TASK, { token });
    await flushMicrotasks();
    token.cancel({ kind: 'user' }, { mode: 'now' });
    expect((await running).status).toBe('cancelled');
    const id = await readFirstId(store);
    expect(await cancellations.get(id)).toEqual({ taskId: id, status: 'cancelled' });
  });

  test('a runner that has stopped listens no more', async () => {
    const { cancellations } = setUpStore();
    const listening = new Set<unknown>();
    const counted = new Proxy(cancellations, {
      get: (target, name: keyof CancellationStore) =>
        name !== 'onCancel'
          ? target[name]
          : (listener: (taskId: string) => void) => {
              listening.add(listener);
              return { [Symbol.dispose]: () => void listening.delete(listener) };
            },
    });
    const { runner } = setUp({ cancellations: counted });
    expect(listening.size).toBe(1);
    await runner[Symbol.asyncDispose]();
    expect(listening.size).toBe(0);
  });
});
