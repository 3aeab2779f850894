import type { StoreKind } from '@whoa/tasks/testing';
import { createProcessBus } from '../../../packages/tasks/src/bus/process-bus.ts';
import { type BusFaults, createLossyBus } from '../bus/lossy-bus.ts';

/**
 * A store whose watches are in one process and whose changes come from another, over a bus that loses, doubles, delays and
 * reorders messages.
 */
export function withLossyBus(kind: StoreKind, faults: BusFaults): StoreKind {
  return {
    name: `${kind.name}, ${faults}`,
    skips: { ...kind.skips, ...(faults === 'gaps' && { 'live words': 'its bus loses every message' }) },
    async createHarness() {
      const harness = await kind.createHarness();
      const lossy = (options: object = {}): object => ({ ...options, bus: createLossyBus(createProcessBus(), faults) });
      return {
        ...harness,
        async open(options) {
          const [watching, changing] = [await harness.open(lossy(options)), await harness.openSecond!(lossy(options))];
          return new Proxy(changing, {
            get(_, name) {
              if (name === Symbol.asyncDispose) return () => closeAll(watching, changing);
              // A reader of the feed is told in its own process.
              const store = name === 'watch' || name === 'feed' ? watching : changing;
              const value: unknown = Reflect.get(store, name);
              return typeof value === 'function' ? (value.bind(store) as unknown) : value;
            },
          });
        },
        openSecond: (options) => harness.openSecond!(lossy(options)),
      };
    },
  };
}

async function closeAll(...stores: readonly AsyncDisposable[]): Promise<void> {
  for (const store of stores) await store[Symbol.asyncDispose]();
}
