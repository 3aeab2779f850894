import { CancellationToken, type CancelReasonInit } from '@whoa/core';
import { describeError } from '@whoa/core/internal';
import { serveMcp } from '@whoa/server';
import { createRunner, type NewTask, type TaskRef } from '@whoa/tasks';
import { OPEN_OPTIONS } from '../agent/agent-options.ts';
import { describeAgents, openAgents } from '../agent/open-agents.ts';
import { type Command, EXIT, readArguments, type Use } from '../command.ts';
import { loadConfig } from '../config/load.ts';
import { cancelOrphanedTasks, createWorkerName } from '../mcp/orphaned-tasks.ts';
import type { System } from '../system.ts';
import { LOCAL_TENANT, openStore } from '../tasks/local-tasks.ts';
import { explainPause, findPause, listPauses } from '../tasks/pauses.ts';
import { explainWaiting } from '../terminal/explain-waiting.ts';
import { listenForEnd } from '../terminal/interrupts.ts';

const help = `whoa mcp [options]

Serves your configuration's agents to an MCP host, on standard input and output: each agent is one tool, and its calls are tasks that
run in this folder. The host starts it. Use 'whoa tasks', 'whoa watch', 'whoa approve' and 'whoa cancel' on the tasks.

  --agent NAME    only this agent; can be repeated. Defaults to all agents of the configuration
  --model NAME    as for 'whoa run'
  --sandbox KIND  what commands may access: workspace, read-only or none
  --yes           allow calls that no rule matches; needs --sandbox
  --config FILE   the configuration file

When the host closes the connection, or on SIGTERM, the command cancels its running tasks and exits. If it was killed, the next
'whoa mcp' cancels them.`;

const OPTIONS = {
  agent: { type: 'string', multiple: true },
  ...OPEN_OPTIONS,
} as const;

export const command: Command = { help, options: OPTIONS, run };

async function run(args: readonly string[], own: Use, system: System): Promise<number> {
  const { values } = readArguments(args, OPTIONS);
  const config = await loadConfig(values.config, system);
  const token = own(new CancellationToken({ name: 'whoa mcp' }));
  const { promise: ended, resolve: end } = Promise.withResolvers<CancelReasonInit>();
  own(listenForEnd(end));
  const { agents, approvals, hooks } = own(
    await openAgents({ config, names: values.agent, values, surroundings: system }),
  );
  const store = own(openStore(config, system.env));
  const { resume, waitForProvider, stopMode = 'now' } = config;
  const chosen = { ...(resume !== undefined && { resume }), ...(waitForProvider !== undefined && { waitForProvider }) };
  const worker = createWorkerName();
  const runner = own(createRunner({ store, agents, approvals, hooks, worker, ...chosen }));
  await cancelOrphanedTasks(store);
  // It takes no tasks of others. It settles those that were cancelled and have no worker.
  await runner.serve({ agents: [] });
  const unsettled = new Set<Promise<unknown>>();
  const start = async (task: NewTask): Promise<TaskRef> => {
    const pause = findPause(await listPauses(store).catch(() => []), task);
    if (pause !== undefined) report(explainPause(pause, system.env, values));
    const { response, ...ref } = await runner.start(task, { token });
    const settled = response.catch(report).finally(() => unsettled.delete(settled));
    unsettled.add(settled);
    return ref;
  };
  const served = { store, start, agents: describeAgents(Object.keys(agents)), tenant: LOCAL_TENANT, by: 'MCP host' };
  const serving = own(await serveMcp({ ...served, onError: report }));
  explainWaiting('mcp', 'an MCP host on standard input; see docs/guides/tools/mcp.md');
  const reason = await Promise.race([ended, serving.closed.then(() => LEFT)]);
  // No one else runs these tasks, so they end with this process.
  token.cancel(reason, { mode: stopMode });
  await Promise.all(unsettled);
  return EXIT.success;
}

const LEFT: CancelReasonInit = { kind: 'disconnect', message: 'the MCP host closed the connection' };

function report(error: unknown): void {
  process.stderr.write(`whoa mcp: ${describeError(error)}\n`);
}
