import type { TaskStore } from '../../packages/tasks/src/store.ts';

/** What happens instead of one operation: look at what was asked, refuse it, delay or drop its answer. */
export type Around = (name: string, call: () => Promise<unknown>, args: unknown[]) => unknown;

/** A real store between which and its user something goes wrong. */
export function alterStore(store: TaskStore, around: Around): TaskStore {
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]): unknown =>
        around(String(name), () => Reflect.apply(value, target, args) as Promise<unknown>, args);
    },
  });
}
