import { createRunner, type TaskStore } from '@whoa/tasks';
import { createPostgresStore } from '@whoa/tasks/internal';
import { expect, test } from 'vitest';
import { borrowPostgres } from '../servers/borrow.ts';
import { query } from '../servers/query.ts';
import { create, running } from './held-task.ts';
import { openStore } from './open-store.ts';
import { storeKinds } from './shared-stores.ts';

const SOON = { timeout: 20_000, interval: 5 };

async function end(store: TaskStore): Promise<{ readonly tenant: string; readonly id: string }> {
  const { ref, by } = await running(store);
  await store.finish(by, { status: 'success' });
  return ref;
}

test.each(storeKinds)(
  'two clients that connected under different retentions each apply their own on $name',
  async (kind) => {
    await using location = await kind.open();
    await using long = openStore(location.location);
    const ref = await end(long);
    await using short = openStore(location.location, { retentionMs: 1 });
    await expect.poll(() => short.get(ref), SOON).toBeUndefined();
    expect(await long.get(ref)).toMatchObject({ status: 'success' });
  },
);

test.each(storeKinds)('a worker removes old tasks on $name, even if its fleet creates nothing more', async (kind) => {
  await using location = await kind.open();
  {
    await using creator = openStore(location.location, { retentionMs: 1 });
    for (let i = 0; i < 30; i++) await create(creator);
  }
  await using store = openStore(location.location);
  await using runner = createRunner({
    store,
    leaseMs: 1_000,
    pollIntervalMs: 50,
    agents: { a: () => Promise.resolve('done') },
  });
  await runner.serve({ concurrency: 10 });
  await expect.poll(async () => (await store.tenants()).tenants, SOON).toEqual([]);
});

test('a create on Postgres does not pay for removing old tasks', async () => {
  await using server = await borrowPostgres();
  await using store = createPostgresStore({ url: server.url, retentionMs: 1 });
  for (let i = 0; i < 20; i++) await end(store);
  const rows = async (): Promise<number> =>
    Number((await query(server.url, 'SELECT count(*) FROM whoa.tasks'))[0]!['count']);
  for (let i = 0; i < 20; i++) await create(store);
  expect(await rows()).toBe(40);
  for (let i = 0; i < 10; i++) await create(store);
  await expect.poll(rows, SOON).toBe(30);
});
