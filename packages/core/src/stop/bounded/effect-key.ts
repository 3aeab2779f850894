/**
 * Makes effect keys: one for each call, and the same for that call however often it is tried. A random prefix and a count cost
 * less than a random key for each call.
 */
export function createEffectKeys(createId: () => string): () => string {
  let prefix: string | undefined;
  let count = 0;
  return () => `${(prefix ??= createId())}-${(count++).toString(36)}`;
}
