// A worker whose tasks take steps, and write down when they are at work. Told to end, it hands them on.
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { createRunner } from '@whoa/tasks';
import { openStore } from '../../tasks/open-store.ts';

const [location = '', file = '', steps = '', stepMs = ''] = process.argv.slice(2);
const store = openStore(location);
const note = (id: string, phase: 'begin' | 'end'): void =>
  appendFileSync(file, `${JSON.stringify({ id, phase, at: Number(process.hrtime.bigint()) })}\n`);
const runner = createRunner({
  store,
  pollIntervalMs: 200,
  agents: {
    steps: async ({ task, previousJournal, journal, signal }) => {
      note(task.id, 'begin');
      try {
        for (let step = previousJournal.length + 1; step <= Number(steps); step++) {
          await sleep(Number(stepMs), undefined, { signal });
          await journal({ type: 'step', step });
        }
        return 'done';
      } finally {
        note(task.id, 'end');
      }
    },
  },
});
process.once('SIGTERM', () => {
  runner[Symbol.asyncDispose]()
    .then(() => store[Symbol.asyncDispose]())
    .then(
      () => process.disconnect(),
      (error: unknown) => process.emitWarning(error as Error),
    );
});
await runner.serve({ concurrency: 400 });
process.send?.({ type: 'serving' });
