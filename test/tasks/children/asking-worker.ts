// A worker whose agent needs approval before it pays, and for invoices with an odd number asks from which account. Each
// payment is a line in a file: asking-worker.ts LOCATION FILE PARK_AFTER_MS [FRONT]
import { appendFileSync } from 'node:fs';
import { bullmq } from '@whoa/bullmq';
import { createAgent, defineTool, sleep, type Tool } from '@whoa/core';
import { callTools, type Planner, reply } from '@whoa/core/model';
import { createRunner, createTaskApprovals } from '@whoa/tasks';
import { z } from 'zod';
import { toEngineOptions } from '../chaos-bullmq.ts';
import { openStore } from '../open-store.ts';

const [location = '', file = '', parkAfterMs = '0', front] = process.argv.slice(2);
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
const account = defineTool({
  name: 'account',
  description: 'Asks from which account to pay',
  inputSchema: z.object({ question: z.string() }),
  answeredBy: 'user',
  answerSchema: z.string(),
});
const planner: Planner = {
  next(history) {
    const invoice = history[0]!.content as string;
    const done = new Set(history.flatMap((message) => (message.role === 'tool' ? [message.tool] : [])));
    if (/[13579]$/.test(invoice) && !done.has('account'))
      return callTools([{ id: 'c0', tool: 'account', input: { question: 'From which account?' } }]);
    if (!done.has('pay')) return callTools([{ id: 'c1', tool: 'pay', input: { invoice } }]);
    return reply(history.at(-1)!.content as string);
  },
};
const clerk = createAgent({ name: 'clerk', planner, tools: [pay, account] as Tool[], approve: approvals.approve });
const store = openStore(location, { maxAttempts: 10_000 });
const engine =
  front === undefined
    ? undefined
    : await bullmq(toEngineOptions(front))({ store, agents: ['clerk'], onError: () => {} });
const runner = createRunner({
  store,
  agents: { clerk },
  approvals,
  leaseMs: 1_000,
  pollIntervalMs: 100,
});
for (;;) {
  try {
    await (engine ? engine.serve(runner, { concurrency: 4 }) : runner.serve({ concurrency: 4 }));
    break;
  } catch {
    // The store is unavailable: retry.
    await sleep(100);
  }
}
process.send!({ type: 'serving' });
