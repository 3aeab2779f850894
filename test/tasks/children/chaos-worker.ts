// Runs due tasks until it is killed or ended. Logs the entries that were acknowledged, and the ends.
import { appendFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { bullmq } from '@whoa/bullmq';
import { createRunner, type TaskContext } from '@whoa/tasks';
import { toEngineOptions } from '../chaos-bullmq.ts';
import { openStore } from '../open-store.ts';

const [location = '', log = '', worker = '', front] = process.argv.slice(2);
const write = (line: object): void => appendFileSync(log, `${JSON.stringify(line)}\n`);

async function job({ task: { id, epoch, inputs }, token, journal }: TaskContext): Promise<string> {
  const { steps, fails } = inputs.at(-1) as { steps: number; fails: boolean };
  for (let step = 0; step < steps; step++) {
    token.throwIfCancelled();
    const entry = `${epoch}.${step}`;
    await journal({ type: 'step', entry });
    write({ type: 'entry', id, entry });
    await wait(Math.random() * 20);
  }
  if (fails) throw new Error('it was asked to');
  return 'done';
}

const store = openStore(location, { maxAttempts: 10_000 });
const engine =
  front === undefined ? undefined : await bullmq(toEngineOptions(front))({ store, agents: ['job'], onError: () => {} });
const runner = createRunner({
  store,
  worker,
  agents: { job },
  leaseMs: 1_000,
  pollIntervalMs: 200,
  hooks: {
    'task-end': ({ id, status }) => write({ type: 'end', id, status }),
    'task-left': ({ id, status }) => write({ type: 'left', id, status }),
  },
});
process.once('SIGTERM', () => {
  (engine ?? runner)
    [Symbol.asyncDispose]()
    .then(() => store[Symbol.asyncDispose]())
    .then(
      // A queue that is away keeps its connections.
      () => (engine ? process.exit() : process.connected && process.disconnect()),
      (error: unknown) => write({ type: 'crash', error: String(error) }),
    );
});
process.on('uncaughtExceptionMonitor', (error) => write({ type: 'crash', error: String(error.stack) }));
for (;;) {
  try {
    await (engine ? engine.serve(runner, { concurrency: 16 }) : runner.serve({ concurrency: 16 }));
    break;
  } catch (error) {
    // The store is unavailable: retry. If its layout is new, the worker that replaces this one handles it.
    if ((error as { code?: string }).code === 'STORE_SETUP') process.send?.({ type: 'refused' });
    await wait(100);
  }
}
process.send?.({ type: 'serving' });
