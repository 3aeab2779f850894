// The worker's side: runs tasks and says when their tokens fire; also answers the bare bell with one read.
import { watch } from 'node:fs';
import { createRunner, createSqliteStore } from '@whoa/tasks';

const [file = '', bell = ''] = process.argv.slice(2);
const store = createSqliteStore({ file });
const runner = createRunner({
  store,
  agents: {
    bench: ({ token }) =>
      new Promise((_resolve, reject) => {
        token.onCancel(() => {
          process.send?.({ type: 'fired', at: `${process.hrtime.bigint()}` });
          reject(new Error('stopped'));
        });
        process.send?.({ type: 'working' });
      }),
  },
});

const { DatabaseSync } = process.getBuiltinModule('node:sqlite');
const raw = new DatabaseSync(file);
const read = raw.prepare('SELECT record FROM tasks WHERE id = ?');
let awaited = '';
watch(bell, () => {
  if (awaited === '') return;
  JSON.parse(String(read.get(awaited)?.['record']));
  awaited = '';
  process.send?.({ type: 'fired', at: `${process.hrtime.bigint()}` });
});

process.on('message', (message: { type: string; id: string }) => {
  if (message.type === 'work') {
    runner.work({ tenant: 'bench', id: message.id }).then(
      () => process.send?.({ type: 'ended' }),
      (error: unknown) => process.emitWarning(error as Error),
    );
  } else {
    awaited = message.id;
    process.send?.({ type: 'working' });
  }
});
process.send?.({ type: 'ready' });
