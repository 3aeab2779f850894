/** Waits for something, but not for long: for no time at all if that has passed already. */
export async function settledWithin(work: Promise<void>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<void>((resolve) => (timer = setTimeout(resolve, Math.max(0, ms))));
  try {
    await Promise.race([work, over]);
  } finally {
    clearTimeout(timer);
  }
}
