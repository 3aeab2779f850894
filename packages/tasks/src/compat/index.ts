// Compatible with programs that already cancel by a key, an event or a polled function. New code cancels through the store.

// Cancel by key.
export { createCancellationRegistry, type CancellationRegistry, type Registration } from './registry.ts';

// Cancel by a task's id, apart from the task store.
export { type CancellationStore, createCancellationStore } from '../cancellations/cancellation-store.ts';

// Cancel by event or checker.
export {
  createEventChannel,
  type EventChannel,
  createCancelMessage,
  type CancelMessage,
} from '../run/channel.ts';
