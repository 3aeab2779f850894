// For code that cancels by key, event or question, as the first design did. New code cancels through the store.

// Cancel by key.
export { createCancellationRegistry, type CancellationRegistry, type Registration } from '../registry.ts';

// Cancel by event, or by asking.
export {
  createEventChannel,
  type EventChannel,
  createCancelMessage,
  type CancelMessage,
} from '../run/claim/channel.ts';
