/** How an operation fails: its code and its words. */
export async function failure(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown as Error & { code: string },
  );
  return error === undefined ? 'nothing' : `${error.code}: ${error.message}`;
}
