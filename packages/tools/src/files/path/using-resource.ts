/** Runs work with a resource and disposes the resource afterwards, even if the work fails. */
export async function usingResource<Held extends AsyncDisposable, Result>(
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
