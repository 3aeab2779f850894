import { systemWorld, type World } from '@whoa/core/embed';
import { settings, worldRule } from '@whoa/core/internal';
import { Watchers } from '../bus/watchers.ts';
import type { TaskStore } from '../store.ts';
import { createCheckedStore } from './checked/checked-store.ts';
import { createLocalDriver } from './local.ts';
import { copyDeep } from './memory/copy.ts';
import { MemoryTables } from './memory/tables.ts';
import { STORE_RULES, type StoreOptions } from './store-options.ts';
import { createStoreRules } from './store-rules.ts';

export interface MemoryStoreOptions extends StoreOptions {
  readonly world?: World | undefined;
}

/** The rules for its options. */
export const MEMORY_RULES: settings.Rules<MemoryStoreOptions> = { ...STORE_RULES, world: worldRule };

/**
 * Creates a store in the memory of this process. Its tasks are lost when the process ends, and no other process can use
 * it.
 *
 * @returns The store.
 * @throws {@link SettingsError} when an option is invalid.
 */
export function createMemoryStore(given: MemoryStoreOptions = {}): TaskStore {
  const options = settings.readSettings<MemoryStoreOptions>(given, MEMORY_RULES);
  const { world = systemWorld } = options;
  const watchers = new Watchers();
  const tables = new MemoryTables(watchers);
  const rules = createStoreRules(options);
  const driver = createLocalDriver(
    {
      name: 'memory',
      inbox: 'memory',
      tables: tables.operations,
      now: () => world.clock.now(),
      // No lock is needed: nothing in a transaction waits, and an operation that throws does so before it saves
      // anything.
      async transact(work) {
        const answer = copyDeep(work());
        const hints = copyDeep(tables.takeHints());
        // Notify in a later microtask: don't call the caller back during a change.
        await Promise.resolve();
        for (const hint of hints) watchers.notify(hint);
        return answer;
      },
      query: (work) => Promise.resolve(copyDeep(work())),
      watch(filter, listener) {
        const watching = watchers.add(filter, listener);
        const hint = filter.words === true ? tables.findWatched(filter.id!) : undefined;
        if (hint !== undefined && hint.tenant === filter.tenant) queueMicrotask(() => watchers.notify(hint));
        return Promise.resolve(watching);
      },
      show: (words) =>
        queueMicrotask(() => {
          const hint = words.next();
          if (hint !== undefined) watchers.notify(hint);
        }),
      [Symbol.asyncDispose]() {
        watchers.clear();
        return Promise.resolve();
      },
    },
    rules,
  );
  return createCheckedStore(driver, { rules, world });
}
