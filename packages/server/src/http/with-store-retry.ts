import type { World } from '@whoa/core/embed';

/** How often a request is sent whose response keeps getting lost. */
const MAX_ASKED = 3;

/** Repeats a request while its response is lost. With the same nonce it counts once. */
export async function withStoreRetry<T>(world: World, ask: (nonce: string) => Promise<T>): Promise<T> {
  const nonce = world.createId();
  for (let asked = 1; ; asked++) {
    try {
      return await ask(nonce);
    } catch (error) {
      if ((error as { code?: unknown } | undefined)?.code !== 'UNKNOWN_OUTCOME' || asked >= MAX_ASKED) throw error;
    }
  }
}
