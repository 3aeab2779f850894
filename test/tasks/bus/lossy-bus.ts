import type { Bus } from '@whoa/tasks/store';
import { FileBus } from '../../../packages/tasks/src/bus/file-bus.ts';

/**
 * - `drops`: every message is lost.
 * - `gaps`: every message is lost, and the bus reports a gap.
 * - `disorders`: each message arrives up to three times, late and in any order.
 */
export type BusFaults = 'drops' | 'gaps' | 'disorders';

const MAX_COPIES = 3;
const MAX_LATE_MS = 200;

/** A bus that does everything that a bus may do to messages. */
export function createLossyBus(bus: Bus, faults: BusFaults): Bus {
  const below = (limit: number): number => Math.floor(Math.random() * limit);
  const gaps = new Set<() => void>();
  const lose = (): void => {
    if (faults === 'gaps') for (const gap of gaps) gap();
  };
  return {
    inbox: bus.inbox,
    send(inbox, message) {
      const copies = faults === 'disorders' ? 1 + below(MAX_COPIES) : 1;
      for (let i = 0; i < copies; i++) setTimeout(() => bus.send(inbox, message), below(MAX_LATE_MS)).unref();
    },
    receive: (listener) => bus.receive(faults === 'disorders' ? listener : lose),
    onGap(listener) {
      gaps.add(listener);
      return bus.onGap(listener);
    },
    [Symbol.asyncDispose]: () => bus[Symbol.asyncDispose](),
  };
}

/**
 * The bus of every store that a test and its programs open. `npm run long -- buses` names its faults, and a file that all
 * of them share.
 */
export function findLossyBus(): { readonly bus?: Bus } {
  const { LOSSY_BUS: faults, LOSSY_BUS_FILE: file } = process.env;
  if (faults === undefined || file === undefined) return {};
  return { bus: createLossyBus(new FileBus(file, 1_000), faults as BusFaults) };
}
