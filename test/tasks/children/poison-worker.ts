// Works until it is killed. One of its agents kills its process as soon as it starts.
import { setTimeout as wait } from 'node:timers/promises';
import { createRunner } from '@whoa/tasks';
import { openStore } from '../open-store.ts';

const [location = '', leaseMs = '', workMs = '', concurrency = ''] = process.argv.slice(2);
const runner = createRunner({
  store: openStore(location),
  leaseMs: Number(leaseMs),
  pollIntervalMs: 200,
  agents: {
    // It journals nothing, so nothing shows that it makes progress.
    harmless: async ({ signal }) => {
      await wait(Number(workMs), undefined, { signal });
      return 'done';
    },
    poison: () => {
      process.kill(process.pid, 'SIGKILL');
      return new Promise(() => {});
    },
  },
});
await runner.serve({ concurrency: Number(concurrency) });
process.send?.({ type: 'serving' });
