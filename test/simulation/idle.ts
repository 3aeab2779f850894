import { isLoopAwaited, waitForQuietLoop } from '../../packages/core/src/stop/event-loop.ts';

/**
 * Waits until nothing can happen without time passing. Turns the event loop only if some code waits for that: it is
 * slow.
 */
export async function untilQuiet(): Promise<void> {
  await new Promise<void>((resolve) => {
    // From a microtask, so that it comes after all others, including those that follow from them.
    queueMicrotask(() => process.nextTick(resolve));
  });
  if (isLoopAwaited()) await waitForQuietLoop();
}
