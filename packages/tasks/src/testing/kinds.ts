import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createVirtualWorld } from '@whoa/core/testing';
import { createMemoryStore } from '../ledger/memory.ts';
import { createSqliteStore } from '../ledger/sqlite.ts';
import type { StoreOptions } from '../ledger/store-options.ts';
import type { TaskStore } from '../store.ts';
import type { StoreKind } from './contract.ts';

/** The memory store under the contract. */
export const memoryStoreKind: StoreKind = {
  name: 'memory',
  skips: {
    'second client': 'memory belongs to one process, so there is no second client',
    'another format': 'memory ends with its process, so no other version meets it',
  },
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
      openSecond: (options = {}) => open(options),
      advance: (ms: number) => world.clock.advance(ms),
      setFormat(format: number) {
        const { DatabaseSync } = process.getBuiltinModule('node:sqlite');
        const database = new DatabaseSync(file);
        database.exec(`PRAGMA user_version = ${format}`);
        return Promise.resolve(database.close());
      },
      [Symbol.asyncDispose]: () => Promise.resolve(rmSync(folder, { recursive: true })),
    });
  },
};
