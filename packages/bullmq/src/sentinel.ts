import type { Queue } from 'bullmq';

const CHECK_MS = 1_000;

/**
 * Notices once a second that Redis lost its jobs: a key that is written last is gone, or the server is another one. Then
 * `onLost` offers everything again; the key is written only after that.
 */
export function watchForLoss(
  queue: Queue,
  { onLost, onError }: { readonly onLost: () => Promise<void>; readonly onError: (error: unknown) => void },
): Disposable {
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;
  const look = async (): Promise<void> => {
    const client = await queue.getBackend().client;
    const [, server = ''] = /^run_id:(\w+)/mu.exec(await client.info()) ?? [];
    const key = queue.toKey('whoa');
    if (isStopped || (await client.get(key)) === server) return;
    await onLost();
    await client.set(key, server);
  };
  const start = async (): Promise<void> => {
    await look().catch(onError);
    if (!isStopped) timer = setTimeout(() => void start(), CHECK_MS);
  };
  start().catch(onError);
  return {
    [Symbol.dispose]() {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}
