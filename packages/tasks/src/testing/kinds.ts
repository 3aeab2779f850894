import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createVirtualWorld } from '@whoa/core/testing';
import type { StoreOptions, TaskStore } from '../store.ts';
import { createMemoryStore } from '../stores/memory.ts';
import { openRedisStore, type RedisStoreOptions } from '../stores/redis.ts';
import { createSqliteStore } from '../stores/sqlite.ts';
import type { StoreKind } from './contract.ts';

/** The memory store under the contract. */
export const memoryStoreKind: StoreKind = {
  name: 'memory',
  skips: { 'second client': 'memory belongs to one process, so there is no second client' },
  createHarness() {
    const world = createVirtualWorld();
    return Promise.resolve({
      open: (options: StoreOptions): Promise<TaskStore> => Promise.resolve(createMemoryStore({ ...options, world })),
      advance: (ms: number) => world.clock.advance(ms),
      [Symbol.asyncDispose]: () => Promise.resolve(),
    });
  },
};

/** The SQLite store under the contract, on a file that is gone afterwards. */
export const sqliteStoreKind: StoreKind = {
  name: 'sqlite',
  createHarness() {
    const world = createVirtualWorld();
    const folder = mkdtempSync(join(tmpdir(), 'whoa-contract-'));
    const file = join(folder, 'tasks.db');
    const open = (options: StoreOptions): Promise<TaskStore> =>
      Promise.resolve(createSqliteStore({ ...options, file, world }));
    return Promise.resolve({
      open,
      openSecond: () => open({}),
      advance: (ms: number) => world.clock.advance(ms),
      [Symbol.asyncDispose]: () => Promise.resolve(rmSync(folder, { recursive: true })),
    });
  },
};

/** The Redis store under the contract, on a server that is there. Every case has a prefix, and a clock, of its own. */
export function createRedisStoreKind(name: string, place: Pick<RedisStoreOptions, 'url' | 'cluster'>): StoreKind {
  return {
    name,
    createHarness() {
      const prefix = `contract-${randomUUID()}`;
      let shiftMs = 0;
      const open = (options: StoreOptions): Promise<TaskStore> =>
        Promise.resolve(openRedisStore({ ...options, ...place, prefix }, () => shiftMs));
      return Promise.resolve({
        open,
        openSecond: () => open({}),
        advance: (ms: number) => Promise.resolve(void (shiftMs += ms)),
        [Symbol.asyncDispose]: () => Promise.resolve(),
      });
    },
  };
}
