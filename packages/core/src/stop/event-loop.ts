type Queue = (callback: () => void) => unknown;

// Read once: test frameworks replace the global one, and then nothing would end before the test advances their clock.
const { setImmediate } = globalThis as { readonly setImmediate?: Queue };
// Browsers have none.
const queue: Queue = setImmediate ?? ((callback) => setTimeout(callback, 0));

let waiting = 0;

/**
 * Waits until the event loop turns. By then every promise has settled that can settle without waiting for I/O or a
 * timer.
 */
export function waitForLoop(): Promise<void> {
  waiting++;
  return new Promise((resolve) => {
    queue(() => {
      waiting--;
      resolve();
    });
  });
}

/** Returns whether something waits for the event loop to turn. */
export function isLoopAwaited(): boolean {
  return waiting > 0;
}

/** Like `waitForLoop`, but also waits for all other such waits, and for those that follow from them. */
export async function waitForQuietLoop(): Promise<void> {
  do await new Promise<void>((resolve) => queue(resolve));
  while (waiting > 0);
}
