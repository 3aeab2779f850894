import { createHmac, randomBytes } from 'node:crypto';

/** Names a task as only this store can: the seal that its claims carry, and so every order to their holder. */
export type SealOf = (id: string) => string;

/** So many seals are remembered. Beyond that they are made again, which a cancel on its way would wait for. */
const REMEMBERED_MAX = 10_000;

/**
 * Makes a store's seal. It stands in the task and comes back with an order, so whoever could forge an order must be able to read
 * the task; and an order to one task, sent again for another, does not fit.
 */
export function createSeal(rememberedMax: number = REMEMBERED_MAX): SealOf {
  const secret = randomBytes(32);
  const remembered = new Map<string, string>();
  return (id) => {
    const known = remembered.get(id);
    if (known !== undefined) return known;
    const seal = createHmac('sha256', secret).update(id).digest('base64url').slice(0, 22);
    remembered.set(id, seal);
    const [oldest] = remembered.keys();
    if (remembered.size > rememberedMax) remembered.delete(oldest!);
    return seal;
  };
}
