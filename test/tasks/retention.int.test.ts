import { createPostgresStore, type TaskStore } from '@whoa/tasks';
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

/** On Redis a task is given its time when it ends; elsewhere everybody goes by their own. */
const countsOf: Readonly<Record<string, 'whoever ended it' | 'whoever asks'>> = {
  SQLite: 'whoever asks',
  Redis: 'whoever ended it',
  Postgres: 'whoever asks',
};

test.each(storeKinds)(
  'clients that keep tasks for different times: on $name that of one of them counts',
  async (kind) => {
    await using location = await kind.open();
    await using long = openStore(location.location);
    await using short = openStore(location.location, { retentionMs: 1 });
    const [byLong, byShort] = [await end(long), await end(short)];
    const [kept, forgotten] = countsOf[kind.name] === 'whoever asks' ? [byShort, byLong] : [byLong, byShort];
    await expect.poll(() => short.get(byShort), SOON).toBeUndefined();
    if (countsOf[kind.name] === 'whoever asks') {
      await expect.poll(() => short.get(forgotten), SOON).toBeUndefined();
      expect(await long.get(kept)).toMatchObject({ status: 'success' });
    } else {
      expect(await long.get(forgotten)).toBeUndefined();
      expect(await short.get(kept)).toMatchObject({ status: 'success' });
    }
  },
);

test('who creates a task on Postgres does not pay for removing old ones', async () => {
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
