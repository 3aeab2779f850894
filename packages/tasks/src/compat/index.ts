// For code that cancels by key, event or checker, as the first design did. New code cancels through the store.

// Cancel by key.
export { createCancellationRegistry, type CancellationRegistry, type Registration } from '../registry.ts';

// Cancel by event or checker.
export {
  createEventChannel,
  type EventChannel,
  createCancelMessage,
  type CancelMessage,
} from '../run/claim/channel.ts';
