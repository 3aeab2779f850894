import type { Json } from '../tool/result.ts';
import type { InputSchema } from '../tool/schema.ts';
import { defineTool, interrupted, type Tool } from '../tool/tool.ts';
import type { Agent } from './agent.ts';
import type { Outcome } from './outcome.ts';
import type { Run } from './run.ts';

export interface AgentToolOptions {
  /** The tool's name; the agent's name unless given. */
  readonly name?: string;
  /** What the parent's model is told about when to ask this agent. */
  readonly description: string;
}

interface Task {
  readonly task: string;
}

const taskSchema: InputSchema<Task> = {
  '~standard': {
    version: 1,
    vendor: 'whoa',
    validate: (value) =>
      typeof value === 'object' && value !== null && typeof (value as Partial<Task>).task === 'string'
        ? { value: value as Task }
        : { issues: [{ message: 'expected a text', path: ['task'] }] },
  },
};

/**
 * An agent as a tool of another. It hears every level its parent hears, its events are nested in its parent's, and what
 * it had said is kept when it is stopped. Undoing the call undoes what the agent did.
 */
export function agentTool(agent: Agent, options: AgentToolOptions): Tool<Task> {
  // Keyed by the details of the result, so that a run is forgotten together with the result it gave.
  const runs = new WeakMap<object, Run>();
  return defineTool({
    name: options.name ?? agent.name,
    description: options.description,
    input: taskSchema,
    inputJsonSchema: {
      type: 'object',
      properties: { task: { type: 'string', description: 'What to do, with everything needed to do it.' } },
      required: ['task'],
      additionalProperties: false,
    },
    // Its own calls are asked about one by one.
    effects: 'read',
    nested: true,
    async execute({ task }, { token, nest }) {
      const run = agent.run(task, { token, hooks: { any: nest } });
      const outcome = await run.outcome;
      const result = { content: outcome.text === '' ? '(no answer)' : outcome.text, details: detailsOf(outcome) };
      runs.set(result.details, run);
      if (outcome.status === 'cancelled') throw interrupted(token, result);
      if (outcome.status === 'failed') throw outcome.error;
      return result;
    },
    async undo({ details }) {
      const run = typeof details === 'object' && details !== null ? runs.get(details) : undefined;
      if (run === undefined) throw new Error('the record of this run is gone, so nothing of it can be undone');
      const undone = await run.undo();
      const failed = undone.filter(({ state }) => state !== 'undone');
      if (failed.length > 0) throw new Error(`not undone: ${failed.map(({ tool }) => tool).join(', ')}`);
    },
  });
}

function detailsOf(outcome: Outcome): { readonly [key: string]: Json } {
  const { runId, agent, status, turns, usage } = outcome;
  return {
    runId,
    agent,
    status,
    turns,
    usage: { ...usage },
    calls: outcome.calls.map(({ callId, tool, state }) => ({ callId, tool, state })),
  };
}
