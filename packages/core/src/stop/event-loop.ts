type Queue = (callback: () => void) => unknown;

// Read once: test frameworks replace the global one, and then nothing would end before the test advances their clock.
const { setImmediate } = globalThis as { readonly setImmediate?: Queue };
/** Calls back once the event loop has turned. Browsers have no `setImmediate`. */
export const onLoopTurn: Queue = setImmediate ?? ((callback) => setTimeout(callback, 0));

let waiting = 0;

/** Waits until the event loop turns. Every promise has settled by then that does not wait for I/O or a timer. */
export function waitForLoop(): Promise<void> {
  waiting++;
  return new Promise((resolve) => {
    onLoopTurn(() => {
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
  do await new Promise<void>((resolve) => onLoopTurn(resolve));
  while (waiting > 0);
}
