// One process of cancel-bus: creates and cancels, or works and reports when a token fires.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { TaskStoreConfig } from '@whoa/tasks';

const [folder = '', config = '{}', part = 'work'] = process.argv.slice(2);
const program = pathToFileURL(join(folder, 'packages/tasks/src/index.ts')).href;
const { createRunner, createTaskStore } = (await import(program)) as typeof import('@whoa/tasks');
const store = createTaskStore(JSON.parse(config) as TaskStoreConfig);
const tell = (message: object): void => void process.send?.(message);
const tenant = 'bench';

interface Asked {
  readonly type: string;
  readonly id: string;
}

async function createOrCancel({ type, id }: Asked): Promise<void> {
  if (type === 'cancel') {
    tell({ type: 'asked', at: `${process.hrtime.bigint()}` });
    await store.cancel({ tenant, id }, {}, { mode: 'now' });
    return;
  }
  const receipt = await store.create({ tenant, agent: 'bench', input: 'x', preferredWorker: 'bench' });
  if (receipt.result !== 'created') throw new Error('not created');
  tell({ type: 'created', id: receipt.task.id });
}

function startWork(): (asked: Asked) => Promise<void> {
  const runner = createRunner({
    store,
    agents: {
      bench: ({ token }) =>
        new Promise((_, reject) => {
          token.onCancel(() => {
            tell({ type: 'fired', at: `${process.hrtime.bigint()}` });
            reject(new Error('stopped'));
          });
          tell({ type: 'working' });
        }),
    },
  });
  return async ({ id }) => {
    await runner.runExisting({ tenant, id });
    tell({ type: 'ended' });
  };
}

const act = part === 'work' ? startWork() : createOrCancel;
process.on('message', (asked: Asked) => {
  act(asked).catch((error: unknown) => process.emitWarning(error as Error));
});
await store.list({ tenant });
tell({ type: 'ready' });
