/** Waits for a promise for at most `ms`; not at all if that is 0 or less. */
export async function settledWithin(work: Promise<void>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<void>((resolve) => (timer = setTimeout(resolve, Math.max(0, ms))));
  try {
    await Promise.race([work, over]);
  } finally {
    clearTimeout(timer);
  }
}
