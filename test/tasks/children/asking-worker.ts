// A worker whose agent asks before it pays. Each payment is a line in a file: asking-worker.ts LOCATION FILE PARK_AFTER_MS
import { appendFileSync } from 'node:fs';
import { createAgent, defineTool } from '@whoa/core';
import { callTools, reply } from '@whoa/core/model';
import { createRunner, createTaskApprovals } from '@whoa/tasks';
import { z } from 'zod';
import { openStore } from '../open-store.ts';
import { scripted } from '../runner-set-up.ts';

const [location = '', file = '', parkAfterMs = '0'] = process.argv.slice(2);
const approvals = createTaskApprovals({ parkAfterMs: Number(parkAfterMs) });
const pay = defineTool({
  name: 'pay',
  description: 'Pays an invoice',
  inputSchema: z.object({ invoice: z.string() }),
  effects: 'write',
  execute({ invoice }) {
    appendFileSync(file, `${invoice}\n`);
    return 'paid';
  },
});
const planner = scripted(
  ([first]) => callTools([{ id: 'c1', tool: 'pay', input: { invoice: first!.content } }]),
  (history) => reply(history.at(-1)!.content as string),
);
const clerk = createAgent({ name: 'clerk', planner, tools: [pay], approve: approvals.approve });
const store = openStore(location, { maxAttempts: 10_000 });
const runner = createRunner({ store, agents: { clerk }, approvals, leaseMs: 1_000, pollIntervalMs: 100 });
await runner.serve({ concurrency: 4 });
process.send!({ type: 'serving' });
