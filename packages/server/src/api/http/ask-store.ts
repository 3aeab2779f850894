import type { World } from '@whoa/core/embed';

/** How often something is asked whose answer keeps getting lost. */
const MAX_ASKED = 3;

/** Asks again while the answer is lost on the way. Under one nonce it counts once, however often it is asked. */
export async function askStore<T>(world: World, ask: (nonce: string) => Promise<T>): Promise<T> {
  const nonce = world.createId();
  for (let asked = 1; ; asked++) {
    try {
      return await ask(nonce);
    } catch (error) {
      if ((error as { code?: unknown } | undefined)?.code !== 'UNKNOWN_OUTCOME' || asked >= MAX_ASKED) throw error;
    }
  }
}
