// The hints that reach a process: none for its own changes, and none for tenants that it does not watch.
import type { TaskStore } from '@whoa/tasks';
import { createPostgresStore, createRedisStore } from '@whoa/tasks/internal';
import { Redis } from 'ioredis';
import pg from 'pg';
import { expect, test } from 'vitest';
import { borrowPostgres, borrowRedis } from '../servers/borrow.ts';
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

test('a worker on Redis gets no hints for its own changes', async () => {
  await using server = await borrowRedis();
  await using store = createRedisStore({ url: server.url });
  await using other = createRedisStore({ url: server.url });
  await using watching = await store.watch({ worker: 'w' }, () => {});
  const wire = new Redis(server.port, '127.0.0.1');
  const sent: string[] = [];
  wire.on('smessage', (_channel, text: string) => sent.push(text));
  await wire.call('SSUBSCRIBE', 'whoa:{s0}:inbox:w');
  const cancelled = await workAlone(store, other);
  await expect.poll(() => sent.some((text) => text.includes(cancelled)), SOON).toBe(true);
  expect(sent.filter((text) => !text.includes(cancelled))).toEqual([]);
  expect(watching).toBeDefined();
  wire.disconnect();
});

test('a watcher of a tenant on Redis is subscribed only to that tenant', async () => {
  await using server = await borrowRedis();
  await using store = createRedisStore({ url: server.url });
  await using watching = await store.watch({ tenant: 'acme' }, () => {});
  const admin = new Redis(server.port, '127.0.0.1');
  expect(await admin.call('PUBSUB', 'SHARDCHANNELS')).toEqual(['whoa:{s0}:changes:acme']);
  expect(await admin.call('PUBSUB', 'CHANNELS')).toEqual([]);
  expect(watching).toBeDefined();
  admin.disconnect();
});

test('a process on Postgres is notified neither about its changes nor about tenants that it does not watch', async () => {
  await using server = await borrowPostgres();
  await using store = createPostgresStore({ url: server.url });
  await using other = createPostgresStore({ url: server.url });
  await using working = await store.watch({ worker: 'w' }, () => {});
  await using watching = await store.watch({ tenant: 'watched' }, () => {});
  const [row] = await query(server.url, "SELECT channel FROM whoa.watchers WHERE name = 'w:w'");
  const wire = new pg.Client(server.url);
  await wire.connect();
  const sent: string[] = [];
  wire.on('notification', ({ payload = '' }) => sent.push(payload));
  await wire.query(`LISTEN "${String(row!['channel'])}"`);
  await other.create({ tenant: 'unwatched', agent: 'a', input: 'x' });
  const cancelled = await workAlone(store, other);
  await expect.poll(() => sent.some((text) => text.includes(cancelled)), SOON).toBe(true);
  expect(sent.filter((text) => !text.includes(cancelled))).toEqual([]);
  const { id } = await create(other, { tenant: 'watched' });
  await expect.poll(() => sent.some((text) => text.includes(id)), SOON).toBe(true);
  expect([working, watching]).toHaveLength(2);
  await wire.end();
});
