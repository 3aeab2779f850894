import type { Hint, WatchFilter } from '../../../store.ts';
import type { Watchers } from '../../watchers.ts';
import type { ChangeNotifier } from './notifier.ts';

/** Calls a listener with the hints that match a filter, from this process and from others, until it is disposed. */
export async function watchHints(
  { watchers, notifier }: { readonly watchers: Watchers; readonly notifier: Pick<ChangeNotifier, 'watch'> },
  filter: WatchFilter,
  listener: (hint: Hint) => void,
): Promise<AsyncDisposable> {
  const watcher = watchers.add(filter, listener);
  try {
    const leave = await notifier.watch(filter);
    let isOver = false;
    return {
      async [Symbol.asyncDispose]() {
        if (isOver) return;
        isOver = true;
        await watcher[Symbol.asyncDispose]();
        await leave();
      },
    };
  } catch (error) {
    await watcher[Symbol.asyncDispose]();
    throw error;
  }
}
