import { createHmac, randomBytes } from 'node:crypto';

/** Names a task as only this store can: the seal that its claims carry, and so every order to their holder. */
export type SealOf = (id: string) => string;

/**
 * Makes a store's seal. It stands in the task and comes back with an order, so whoever could forge an order must be able to read
 * the task; and an order to one task, sent again for another, does not fit.
 */
export function createSeal(): SealOf {
  const secret = randomBytes(32);
  return (id) => createHmac('sha256', secret).update(id).digest('base64url').slice(0, 22);
}
