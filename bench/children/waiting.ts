// A worker whose tasks only wait. Reports how many it has and its processor time, on request.
import { createRunner, createTaskStore, type TaskStoreConfig } from '@whoa/tasks';

export interface WaitingReport {
  readonly live: number;
  readonly cpuMs: number;
}

const [config = '{}', concurrency = '1'] = process.argv.slice(2);
const runner = createRunner({
  store: createTaskStore(JSON.parse(config) as TaskStoreConfig),
  agents: {
    waits: ({ token }) => new Promise((_resolve, reject) => token.onCancel(() => reject(new Error('stopped')))),
  },
});
// The parent was killed: exit.
process.on('disconnect', () => process.exit());
process.on('message', () => {
  const { user, system } = process.cpuUsage();
  process.send?.({ live: runner.live, cpuMs: (user + system) / 1_000 } satisfies WaitingReport);
});
await runner.serve({ concurrency: Number(concurrency) });
process.send?.({ live: 0, cpuMs: 0 } satisfies WaitingReport);
