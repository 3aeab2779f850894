import { systemWorld, type World } from '@whoa/core/embed';
import { StoreClosedError } from '../../errors.ts';
import type { TaskStore } from '../../store.ts';
import type { StoreDriver, StoreRules } from '../driver.ts';
import { createCheckedClient } from './checked-client.ts';
import { createCheckedOperator } from './checked-operator.ts';
import { createCheckedWorker } from './checked-worker.ts';

/**
 * Wraps a driver in the store that callers use: it checks arguments, fills in defaults, and bounds what is passed in.
 *
 * @returns The store.
 */
export function createCheckedStore(
  driver: StoreDriver,
  { rules, world = systemWorld }: { readonly rules: StoreRules; readonly world?: World | undefined },
): TaskStore {
  let isClosed = false;
  const open = (): StoreDriver => {
    if (isClosed) throw new StoreClosedError();
    return driver;
  };
  return {
    name: driver.name,
    ...createCheckedClient(open, world),
    ...createCheckedWorker(open, rules),
    ...createCheckedOperator(open),
    get feed() {
      return open().feed;
    },
    async [Symbol.asyncDispose]() {
      if (isClosed) return;
      isClosed = true;
      await driver[Symbol.asyncDispose]();
    },
  };
}
