// Cancels the tasks that its parent names, from a process that has nothing else to do with them, and reports the receipts.
import type { TaskRef } from '@whoa/tasks';
import { retryWhileUnavailable } from '../ask-until-answered.ts';
import { openStore } from '../open-store.ts';

const store = openStore(process.argv[2]!);

interface Wish {
  readonly ref: TaskRef;
  readonly mode: 'graceful' | 'now' | 'kill';
}

process.on('message', ({ ref, mode }: Wish) => {
  retryWhileUnavailable(() => store.cancel(ref, { by: 'chaos' }, { mode })).then(
    (receipt) => process.send?.({ id: ref.id, receipt }),
    (error: unknown) => process.send?.({ id: ref.id, error: String(error) }),
  );
});
process.send?.({ type: 'ready' });
