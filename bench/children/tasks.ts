// A worker of one queue. Reports how many tasks it has ended and claimed, and the processor time it used; `isTimed`: when
// each task starts, too.
import { setTimeout as wait } from 'node:timers/promises';
import { QUEUES, type QueueName } from '../queues/queues.ts';

export interface ChildOptions {
  readonly queue: QueueName;
  readonly url: string;
  readonly concurrency: number;
  readonly sleepMs: number;
  readonly isTimed: boolean;
}

export interface ChildReport {
  readonly ended: number;
  readonly claims: number;
  readonly cpuMs: number;
  readonly startedAt?: string;
}

// The parent was killed: exit.
process.on('disconnect', () => process.exit());

const REPORT_MS = 10;

const { queue, url, concurrency, sleepMs, isTimed } = JSON.parse(process.argv[2] ?? '{}') as ChildOptions;
let [ended, claims, reported] = [0, 0, -1];

await QUEUES[queue].startWorker(url, {
  concurrency,
  async work() {
    if (isTimed) send({ startedAt: `${process.hrtime.bigint()}` });
    if (sleepMs > 0) await wait(sleepMs);
  },
  onEnd: () => void ended++,
  onClaims: (count) => void (claims += count),
});
setInterval(() => {
  if (ended !== reported) send({});
  reported = ended;
}, REPORT_MS);

function send(more: { startedAt?: string }): void {
  const { user, system } = process.cpuUsage();
  process.send?.({ ended, claims, cpuMs: (user + system) / 1_000, ...more } satisfies ChildReport);
}
