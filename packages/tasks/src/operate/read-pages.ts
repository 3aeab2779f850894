/**
 * Reads page after page, until the last one or a stop.
 *
 * @returns The pages.
 */
export async function* readPages<Page extends { readonly next?: string }>(
  read: (cursor: string | undefined) => Promise<Page>,
  signal?: AbortSignal,
): AsyncGenerator<Page> {
  let cursor: string | undefined;
  do {
    if (signal?.aborted === true) return;
    const page = await read(cursor);
    yield page;
    cursor = page.next;
  } while (cursor !== undefined);
}
