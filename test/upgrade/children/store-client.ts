// Calls a store for whoever started it: each message is a method and its arguments.
import { followTask, type TaskRef, type TaskStore } from '@whoa/tasks';
import { openStore } from '../../tasks/open-store.ts';

interface Call {
  readonly number: number;
  readonly method: keyof TaskStore | 'follow';
  readonly args: readonly unknown[];
}

const store = openStore(process.argv[2]!, { maxAttempts: 10_000 });

/** Follows a task to its end. Returns the positions it saw. */
async function follow(task: TaskRef): Promise<readonly number[]> {
  const positions: number[] = [];
  for await (const seen of followTask(store, task)) if (seen.type === 'entry') positions.push(seen.position);
  return positions;
}

process.on('message', ({ number, method, args }: Call) => {
  const called =
    method === 'follow'
      ? follow(args[0] as TaskRef)
      : (store[method] as (...args: readonly unknown[]) => Promise<unknown>)(...args);
  called.then(
    (result) => process.send?.({ number, result }),
    (error: Error & { code?: string }) =>
      process.send?.({ number, error: { message: error.message, code: error.code } }),
  );
});
process.send?.({ type: 'ready' });
