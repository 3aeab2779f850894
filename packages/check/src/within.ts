/** Waits for a promise at most so long. Returns whether it came in time; a rejection counts as that. */
export async function within(ms: number, wait: PromiseLike<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  // A process that was stopped or starved runs its timers before it reads what arrived in the meantime.
  const late = new Promise<false>((resolve) => (timer = setTimeout(() => setImmediate(resolve, false), ms)));
  const settled = wait.then(
    () => true,
    () => true,
  );
  try {
    return await Promise.race([settled, late]);
  } finally {
    clearTimeout(timer);
  }
}
