import type { TaskStore } from '../../packages/tasks/src/store.ts';

/** Replaces one operation: inspects the request, rejects it, delays or drops its response. */
export type Around = (name: string, call: () => Promise<unknown>, args: unknown[]) => unknown;

/** A real store with faults between it and its user. */
export function alterStore(store: TaskStore, around: Around): TaskStore {
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      // It returns nothing, and may lose what it is given.
      if (name === 'show') return value.bind(target) as unknown;
      return (...args: unknown[]): unknown =>
        around(String(name), () => Reflect.apply(value, target, args) as Promise<unknown>, args);
    },
  });
}
