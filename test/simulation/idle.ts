import { isLoopAwaited, waitForQuietLoop } from '../../packages/core/src/stop/event-loop.ts';

/** Waits until nothing can happen without time passing. Turns the event loop only for those who wait for that: it is slow. */
export async function untilQuiet(): Promise<void> {
  await new Promise<void>((resolve) => {
    // From a microtask, so that it comes after all of them, also those that follow from them.
    queueMicrotask(() => process.nextTick(resolve));
  });
  if (isLoopAwaited()) await waitForQuietLoop();
}
