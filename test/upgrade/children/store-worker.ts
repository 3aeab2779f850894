// Holds many tasks until the parent lets them end. Logs the entries that were acknowledged, and the ends.
import { appendFileSync } from 'node:fs';
import { createRunner, type TaskContext, type TaskStore } from '@whoa/tasks';
import { openStore } from '../../tasks/open-store.ts';

const [location = '', log = '', worker = '', concurrency = '', agent = ''] = process.argv.slice(2);
const write = (line: object): void => appendFileSync(log, `${JSON.stringify(line)}\n`);
/** Stays until it is ended: what a process says just before its exit may be lost. */
const refuse = (error: unknown): Promise<never> => {
  if ((error as { code?: string }).code !== 'STORE_SETUP') throw error;
  process.send!({ type: 'refused', error: (error as Error).message });
  return new Promise(() => {});
};
const gate = Promise.withResolvers<void>();
process.on('message', () => gate.resolve());

async function job({ task: { id, epoch, inputs }, token, journal }: TaskContext): Promise<string> {
  const step = async (entry: string): Promise<void> => {
    await journal({ type: 'step', entry });
    write({ type: 'entry', id, entry });
  };
  await step(`${epoch}.0`);
  const stopped = Promise.withResolvers<void>();
  const listener = token.onCancel(() => stopped.resolve());
  if (inputs.at(-1) !== 'short') await Promise.race([gate.promise, stopped.promise]);
  listener[Symbol.dispose]();
  token.throwIfCancelled();
  await step(`${epoch}.1`);
  return 'done';
}

const store = await open();
const runner = createRunner({
  store,
  worker,
  agents: { [agent]: job },
  leaseMs: 5_000,
  pollIntervalMs: 200,
  hooks: {
    'task-end': ({ id, status }) => write({ type: 'end', id, status }),
    'store-error': ({ error }) => process.send?.({ type: 'store-error', error: (error as Error).message }),
  },
});
process.on('uncaughtExceptionMonitor', (error) => write({ type: 'crash', error: String(error.stack) }));
process.once('SIGTERM', () => {
  runner
    .stop('now')
    .then(() => store[Symbol.asyncDispose]())
    .then(
      () => process.connected && process.disconnect(),
      (error: unknown) => write({ type: 'crash', error: String(error) }),
    );
});
await serve();
process.send?.({ type: 'serving' });

async function serve(): Promise<void> {
  try {
    await runner.serve({ concurrency: Number(concurrency) });
  } catch (error) {
    // A busy machine is not a refusal.
    if ((error as { code?: string }).code === 'STORE_BUSY') return serve();
    return refuse(error);
  }
}

/** A file is rejected when it is opened, a server on the first request. */
async function open(): Promise<TaskStore> {
  try {
    return openStore(location, { maxAttempts: 10_000 });
  } catch (error) {
    return refuse(error);
  }
}
