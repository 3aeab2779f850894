// The hints that reach a process: none for its own changes, and none for tenants that it does not watch.
import type { TaskStore } from '@whoa/tasks';
import { createPostgresStore } from '@whoa/tasks/internal';
import pg from 'pg';
import { expect, test } from 'vitest';
import { borrowPostgres } from '../servers/borrow.ts';
import { query } from '../servers/query.ts';
import { create, running } from './held-task.ts';

const SOON = { timeout: 20_000, interval: 20 };

/** A worker does everything it can to one task; then another process cancels a second one, whose hint must arrive. */
async function workAlone(store: TaskStore, other: TaskStore): Promise<string> {
  const { by } = await running(store);
  await store.append(by, { after: 0, events: ['x'] });
  await store.finish(by, { status: 'success' });
  const { ref } = await running(store);
  await other.cancel(ref);
  return ref.id;
}

test('a process on Postgres is notified neither about its changes nor about tenants that it does not watch', async () => {
  await using server = await borrowPostgres();
  await using store = createPostgresStore({ url: server.url });
  await using other = createPostgresStore({ url: server.url });
  await using working = await store.watch({ worker: 'w' }, () => {});
  await using watching = await store.watch({ tenant: 'watched' }, () => {});
  const [row] = await query(server.url, "SELECT inbox FROM whoa.interests WHERE name = 'w:w'");
  const wire = new pg.Client(server.url);
  await wire.connect();
  const sent: string[] = [];
  wire.on('notification', ({ payload = '' }) => sent.push(Buffer.from(payload.split(' ')[3]!, 'base64').toString()));
  await wire.query(`LISTEN "${String(row!['inbox']).replace('postgres:', '')}"`);
  await other.create({ tenant: 'unwatched', agent: 'a', input: 'x' });
  const cancelled = await workAlone(store, other);
  await expect.poll(() => sent.some((text) => text.includes(cancelled)), SOON).toBe(true);
  expect(sent.filter((text) => !text.includes(cancelled))).toEqual([]);
  const { id } = await create(other, { tenant: 'watched' });
  await expect.poll(() => sent.some((text) => text.includes(id)), SOON).toBe(true);
  expect([working, watching]).toHaveLength(2);
  await wire.end();
});
