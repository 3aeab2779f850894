// A worker whose agent needs approval for its only call. Reports when a call or another task starts, and its figures on
// request.
import { createAgent, defineTool } from '@whoa/core';
import { callTools, reply } from '@whoa/core/model';
import { createRunner, createTaskApprovals, createTaskStore, type TaskStoreConfig } from '@whoa/tasks';
import { z } from 'zod';
import { openBare } from '../stores/cases.ts';

export interface AskingOptions {
  readonly config: TaskStoreConfig;
  /** The name of the agent with the question. */
  readonly agent: string;
  readonly concurrency: number;
  /** `null`: its tasks are never parked. */
  readonly parkAfterMs: number | null;
  /** The name of a bare notifier: each notification counts as a start, of `bare-1`, `bare-2`, … */
  readonly notifier?: string;
}

export type AskingMessage =
  | { readonly type: 'ready' }
  | { readonly type: 'started'; readonly id: string; readonly at: string }
  | { readonly type: 'live'; readonly live: number };

const {
  config,
  agent: name,
  concurrency,
  parkAfterMs,
  notifier,
} = JSON.parse(process.argv[2] ?? '{}') as AskingOptions;
const send = (message: AskingMessage): void => void process.send?.(message);
const start = (id: string): void => send({ type: 'started', id, at: `${process.hrtime.bigint()}` });
const approvals = createTaskApprovals({ parkAfterMs: parkAfterMs ?? Infinity });
const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  inputSchema: z.object({}),
  effects: 'write',
  execute(_input, { workId }) {
    start(workId ?? '');
    return 'paid';
  },
});
const agent = createAgent({
  name,
  tools: [pay],
  approve: approvals.approve,
  planner: {
    next: (history) =>
      history.some(({ role }) => role === 'tool') ? reply('done') : callTools([{ id: 'c1', tool: 'pay', input: {} }]),
  },
});
const runner = createRunner({
  store: createTaskStore(config),
  agents: {
    [name]: agent,
    brief({ task }) {
      start(task.id);
      return Promise.resolve('done');
    },
  },
  approvals,
});
// The parent was killed: exit.
process.on('disconnect', () => process.exit());
process.on('message', () => send({ type: 'live', live: runner.live }));
let notified = 0;
if (notifier !== undefined) await openBare(config).listen(notifier, () => start(`bare-${++notified}`));
await runner.serve({ concurrency });
send({ type: 'ready' });
