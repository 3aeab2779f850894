// What every cancellation store must do, on whatever it is kept.
import { expect, test } from 'vitest';
import {
  type CancellationStore,
  type CancellationStoreConfig,
  createCancellationStore,
} from '../../packages/tasks/src/cancellations/cancellation-store.ts';
import { createMemoryStore } from '../../packages/tasks/src/ledger/memory.ts';
import { createRunner } from '../../packages/tasks/src/run/store-runner.ts';
import { TASK, untilCancelled } from './runner-set-up.ts';

interface Kept {
  readonly config: () => CancellationStoreConfig;
  /** Lets an entry expire, as after a week. */
  readonly expire: (taskId: string, store: CancellationStore) => Promise<void>;
  /** Whether a second store sees what the first wrote, and hears of a cancel. */
  readonly isShared: boolean;
}

let count = 0;
const nextId = (): string => `task ${count++}, "it's" :{é}`;

/** Repeats a question until it is answered with yes. Lets the test's time limit fire in between. */
export async function until(ask: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await ask())) await new Promise((resolve) => setImmediate(resolve));
}

export function testCancellationStore(name: string, { config, expire, isShared }: Kept): void {
  const open = (): CancellationStore => createCancellationStore(config());

  test(`${name}: a task is registered, runs, is cancelled and ends as cancelled`, async () => {
    await using store = open();
    const id = nextId();
    expect(await store.get(id)).toBeUndefined();
    expect(await store.isCancelled(id)).toBe(false);
    expect(await store.register(id)).toEqual({ taskId: id, status: 'init' });
    expect(await store.setStatus(id, 'running')).toEqual({ taskId: id, status: 'running' });
    expect(await store.cancel(id, 'user request')).toEqual({ result: 'set', status: 'cancelled' });
    expect(await store.isCancelled(id)).toBe(true);
    expect(await store.get(id)).toEqual({ taskId: id, status: 'cancelled', reason: 'user request' });
    expect(await store.setStatus(id, 'cancelled')).toMatchObject({ status: 'cancelled', reason: 'user request' });
    expect(await store.cancel(id)).toEqual({ result: 'too-late', status: 'cancelled' });
  });

  test(`${name}: a cancel before the task is registered is kept`, async () => {
    await using store = open();
    const id = nextId();
    expect(await store.cancel(id, 'changed my mind')).toEqual({ result: 'set', status: 'cancelled' });
    const known = { taskId: id, status: 'cancelled', reason: 'changed my mind' };
    expect(await store.register(id, 'running')).toEqual(known);
    expect(await store.setStatus(id, 'running')).toEqual(known);
  });

  test(`${name}: a second cancel changes nothing, also not the reason`, async () => {
    await using store = open();
    const id = nextId();
    await store.register(id);
    await Promise.all([store.cancel(id, 'first'), store.cancel(id, 'first'), store.cancel(id, 'first')]);
    expect(await store.cancel(id, 'second')).toEqual({ result: 'set', status: 'cancelled' });
    expect(await store.get(id)).toMatchObject({ reason: 'first' });
  });

  test.for(['success', 'failed'] as const)(`${name}: a cancel after %s is too late`, async (status) => {
    await using store = open();
    const id = nextId();
    await store.setStatus(id, status, 'as reported');
    expect(await store.cancel(id, 'too slow')).toEqual({ result: 'too-late', status });
    expect(await store.isCancelled(id)).toBe(false);
    expect(await store.get(id)).toEqual({ taskId: id, status, reason: 'as reported' });
  });

  test(`${name}: work that ended in another way than it was asked to is not called cancelled`, async () => {
    await using store = open();
    const id = nextId();
    await store.cancel(id, 'too slow');
    expect(await store.setStatus(id, 'success')).toEqual({ taskId: id, status: 'success' });
    expect(await store.isCancelled(id)).toBe(false);
  });

  test(`${name}: the first end is kept`, async () => {
    await using store = open();
    const id = nextId();
    await store.setStatus(id, 'failed', 'no money');
    const failed = { taskId: id, status: 'failed', reason: 'no money' };
    expect(await store.setStatus(id, 'success')).toEqual(failed);
    expect(await store.register(id, 'running')).toEqual(failed);
  });

  test(`${name}: an entry that has expired is gone, with its cancel`, async () => {
    await using store = open();
    const id = nextId();
    await store.cancel(id);
    await expire(id, store);
    expect(await store.get(id)).toBeUndefined();
    expect(await store.isCancelled(id)).toBe(false);
    expect(await store.register(id)).toEqual({ taskId: id, status: 'init' });
  });

  test(`${name}: a cancel and an end at the same time agree on which was first`, async () => {
    await using store = open();
    for (let i = 0; i < 20; i++) {
      const id = nextId();
      const [cancel, end] = await Promise.all([store.cancel(id), store.setStatus(id, 'success')]);
      expect(end.status).toBe('success');
      expect([
        { result: 'too-late', status: 'success' },
        { result: 'set', status: 'cancelled' },
      ]).toContainEqual(cancel);
    }
  });

  test.skipIf(!isShared)(`${name}: another process reads what was written`, async () => {
    await using store = open();
    await using other = open();
    const id = nextId();
    await store.register(id, 'running');
    expect(await other.cancel(id, 'from elsewhere')).toEqual({ result: 'set', status: 'cancelled' });
    expect(await store.isCancelled(id)).toBe(true);
    expect(await store.get(id)).toMatchObject({ reason: 'from elsewhere' });
  });

  test(`${name}: a listener hears of a cancel, and not after it was disposed`, async () => {
    await using store = open();
    await using elsewhere = open();
    const asking = isShared ? elsewhere : store;
    const told = new Set<string>();
    const listening = store.onCancel((taskId) => told.add(taskId));
    let id = nextId();
    // The server subscribes us some time after the call: ask until one is heard.
    await until(async () => {
      await asking.cancel((id = nextId()));
      return told.size > 0;
    });
    listening[Symbol.dispose]();
    told.clear();
    await store.cancel(id);
    expect(told.size).toBe(0);
  });

  test.for<[string, (store: CancellationStore) => Promise<unknown>]>([
    ['no id', (store) => store.cancel('')],
    ['an id that is no text', (store) => store.register(7 as never)],
    ['a long id', (store) => store.isCancelled('x'.repeat(513))],
    ['an id with NUL', (store) => store.cancel('task\0')],
    ['an id that is not well-formed', (store) => store.cancel('task\ud800')],
    ['an unknown status', (store) => store.setStatus('task', 'done' as never)],
    ['an object as status', (store) => store.register('task', {} as never)],
    ['a reason that is no text', (store) => store.cancel('task', { message: 'stop' } as never)],
  ])(`${name}: nonsense is refused and changes nothing: %s`, async ([, call]) => {
    await using store = open();
    await expect(call(store)).rejects.toThrow(TypeError);
    expect(await store.get('task')).toBeUndefined();
  });

  test(`${name}: long and broken texts are kept as texts`, async () => {
    await using store = open();
    const id = `${nextId()} \u{1f600}`;
    await store.cancel(id, `\udc00\0${'x'.repeat(5_000)}`);
    expect((await store.get(id))?.reason).toHaveLength(1_000);
    expect(await store.isCancelled(id)).toBe(true);
  });

  test(`${name}: a closed store says so`, async () => {
    const store = open();
    await store[Symbol.asyncDispose]();
    await store[Symbol.asyncDispose]();
    await expect(store.cancel('task')).rejects.toThrow('has been closed');
    await expect(store.get('task')).rejects.toThrow('has been closed');
  });

  test.skipIf(!isShared)(
    `${name}: a runner stops a task that is cancelled from elsewhere, and writes how it ended`,
    async () => {
      await using cancellations = open();
      await using elsewhere = open();
      const ledger = createMemoryStore();
      await using runner = createRunner({
        store: ledger,
        agents: { assistant: untilCancelled },
        cancellations,
        pollIntervalMs: 20,
      });
      const { id, response } = await runner.start(TASK);
      while ((await elsewhere.get(id)) === undefined);
      expect(await elsewhere.get(id)).toEqual({ taskId: id, status: 'running' });
      expect(await elsewhere.cancel(id, 'user request')).toEqual({ result: 'set', status: 'cancelled' });
      expect((await response).status).toBe('cancelled');
      const { stop } = (await ledger.get({ tenant: TASK.tenant, id }))!;
      expect(stop?.reason).toMatchObject({ kind: 'user', via: 'checker', message: 'user request' });
      expect(await elsewhere.cancel(id)).toEqual({ result: 'too-late', status: 'cancelled' });
    },
  );
}
