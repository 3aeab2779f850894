import { bullmq } from './bullmq.ts';
import { graphile } from './graphile.ts';
import { pgBoss } from './pg-boss.ts';
import type { Queue } from './queue.ts';
import { behindBullmq, behindBullmqJobs, rawLoop, whoa } from './whoa.ts';

export type QueueName =
  | 'whoa'
  | 'raw-loop'
  | 'behind-bullmq'
  | 'behind-bullmq-jobs'
  | 'bullmq'
  | 'pg-boss'
  | 'graphile-worker';

export const QUEUES: Readonly<Record<QueueName, Queue>> = {
  whoa,
  'raw-loop': rawLoop,
  'behind-bullmq': behindBullmq,
  'behind-bullmq-jobs': behindBullmqJobs,
  bullmq,
  'pg-boss': pgBoss,
  'graphile-worker': graphile,
};
