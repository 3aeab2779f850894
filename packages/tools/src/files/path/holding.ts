/** Uses something for as long as the work takes, and gives it back however that ends. */
export async function holding<Held extends AsyncDisposable, Result>(
  held: Promise<Held>,
  work: (held: Held) => Promise<Result> | Result,
): Promise<Result> {
  const it = await held;
  try {
    return await work(it);
  } finally {
    await it[Symbol.asyncDispose]();
  }
}
