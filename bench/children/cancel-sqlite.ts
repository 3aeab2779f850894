// The worker's side: runs tasks and reports when their tokens fire; also responds to the bare notifier with one read.
import { watch } from 'node:fs';
import { createRunner } from '@whoa/tasks';
import { createSqliteStore } from '@whoa/tasks/internal';

const [file = '', notifier = '', known = ''] = process.argv.slice(2);
const fired = (): void => void process.send?.({ type: 'fired', at: `${process.hrtime.bigint()}` });
const runner = createRunner({
  store: createSqliteStore({ file }),
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

const { DatabaseSync } = process.getBuiltinModule('node:sqlite');
const raw = new DatabaseSync(file);
const read = raw.prepare('SELECT record FROM tasks WHERE id = ?');
watch(notifier, () => {
  JSON.parse(String(read.get(known)?.['record']));
  fired();
});

process.on('message', ({ id }: { id: string }) => {
  runner.runExisting({ tenant: 'bench', id }).then(
    () => process.send?.({ type: 'ended' }),
    (error: unknown) => process.emitWarning(error as Error),
  );
});
process.send?.({ type: 'ready' });
