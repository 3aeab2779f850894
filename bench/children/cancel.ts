// The worker's side: runs tasks and reports when their tokens fire; also responds to the bare notifier after one read.
import { createRunner, createTaskStore, type TaskStoreConfig } from '@whoa/tasks';
import { openBare } from '../stores/cases.ts';

const config = JSON.parse(process.argv[2] ?? '{}') as TaskStoreConfig;
const fired = (): void => void process.send?.({ type: 'fired', at: `${process.hrtime.bigint()}` });
const runner = createRunner({
  store: createTaskStore(config),
  agents: {
    bench: ({ token }) =>
      new Promise((_resolve, reject) => {
        token.onCancel(() => {
          fired();
          reject(new Error('stopped'));
        });
        process.send?.({ type: 'working' });
      }),
  },
});
await openBare(config).listen('bare-bell', fired);

process.on('message', ({ id }: { id: string }) => {
  runner.runExisting({ tenant: 'bench', id }).then(
    () => process.send?.({ type: 'ended' }),
    (error: unknown) => process.emitWarning(error as Error),
  );
});
process.send?.({ type: 'ready' });
