import { execFileSync } from 'node:child_process';
import { createPostgresStore } from '@whoa/tasks/internal';
import { expect, test } from 'vitest';
import { startPostgres } from '../servers/postgres.ts';
import { query } from '../servers/query.ts';

const READER = { consumer: 'restored', reader: 'r', leaseMs: 1_000 };

/** Ends a task of a tenant. */
async function end(store: ReturnType<typeof createPostgresStore>, tenant: string): Promise<string> {
  const receipt = await store.create({ tenant, agent: 'a', input: 1 });
  if (receipt.result !== 'created') throw new Error(receipt.result);
  await store.cancel({ tenant, id: receipt.task.id });
  return receipt.task.id;
}

async function drain(store: ReturnType<typeof createPostgresStore>, reader = READER): Promise<(string | undefined)[]> {
  const taken = await store.feed.take(reader, { limit: 100 });
  if (taken.result === 'gone') throw new Error('gone');
  await store.feed.move(reader, taken.pages);
  return taken.pages.flatMap(({ events }) => events.map(([, { task }]) => task));
}

test('a feed that is restored into another cluster continues after what was read, and loses nothing', async () => {
  await using old = await startPostgres();
  await using fresh = await startPostgres();
  // The restored cursors are ahead of all transactions of the new server.
  for (let i = 0; i < 500; i++) await query(old.url, 'SELECT pg_current_xact_id()', []);
  const [read, unread] = [[] as string[], [] as string[]];
  {
    await using store = createPostgresStore({ url: old.url });
    await store.feed.register({ consumer: READER.consumer, kinds: ['task.ended'] });
    await drain(store);
    for (let i = 0; i < 10; i++) read.push(await end(store, `t${i}`));
    expect(new Set(await drain(store))).toEqual(new Set(read));
    for (let i = 0; i < 10; i++) unread.push(await end(store, `t${i}`));
  }
  const dump = execFileSync('pg_dump', [old.url], { maxBuffer: 1e9 });
  execFileSync('psql', ['-q', '-v', 'ON_ERROR_STOP=1', fresh.url], {
    input: dump,
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  await using store = createPostgresStore({ url: fresh.url });
  const later: string[] = [];
  for (let i = 0; i < 10; i++) later.push(await end(store, `t${i}`));
  await query(fresh.url, 'UPDATE whoa.cursors SET until = 0', []);
  const found = await drain(store, { ...READER, reader: 'other' });
  expect(new Set(found.filter((id) => !read.includes(id!)))).toEqual(new Set([...unread, ...later]));
  expect(await drain(store, { ...READER, reader: 'other' })).toEqual([]);
}, 120_000);
