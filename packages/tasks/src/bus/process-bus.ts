import { randomBytes } from 'node:crypto';
import { type Bus, Listeners } from './bus.ts';

const inboxes = new Map<string, Listeners>();

/**
 * Creates a bus inside this process.
 *
 * @returns The bus.
 */
export function createProcessBus(inbox: string = randomBytes(12).toString('hex')): Bus {
  const listeners = new Listeners();
  return {
    inbox,
    // In a later microtask: don't call a receiver back while its sender changes something.
    send: (to, message) => queueMicrotask(() => inboxes.get(to)?.deliver(message)),
    receive(listener) {
      inboxes.set(inbox, listeners);
      return Promise.resolve(listeners.add(listener, () => inboxes.delete(inbox)));
    },
    onGap: (listener) => listeners.onGap(listener),
    [Symbol.asyncDispose]() {
      inboxes.delete(inbox);
      return Promise.resolve();
    },
  };
}
