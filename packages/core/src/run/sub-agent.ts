import { CancelledError } from '../stop/errors.ts';
import { having, readSettings, required, SettingsError, text } from '../stop/settings.ts';
import type { Call } from '../tool/call/call.ts';
import { NESTED, type NestedContext, type NestedLeft, type NestedRun, type WithNested } from '../tool/call/nested.ts';
import { findUndoData } from '../tool/call/undo-data.ts';
import { describeError } from '../tool/normalize.ts';
import type { CallResult, Effects, Json, ToolResult } from '../tool/result.ts';
import { toText } from '../tool/result.ts';
import type { InputSchema } from '../tool/schema.ts';
import { defineTool, type Tool, type ToolContext } from '../tool/tool.ts';
import type { Agent } from './agent.ts';
import { type Message, toReplyText, type UserMessage } from './history/message.ts';
import type { Outcome } from './report/outcome.ts';
import type { Run } from './run.ts';
import { type InnerRunOptions, RESUMED, type RunOptions } from './setup.ts';
import { MODELS, type WithModels } from './spending/models.ts';
import { undoWhole } from './undo.ts';

export interface AgentToolOptions {
  /** The tool's name. Defaults to the agent's name. */
  readonly name?: string | undefined;
  /** Explains to the parent's model when to use this agent. */
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
        : { issues: [{ message: 'expected a string', path: ['task'] }] },
  },
};

/**
 * Makes an agent a tool of another agent. It follows every stop level of its parent and shares its exclusive keys. Its
 * events are nested in its parent's, and its usage counts as its parent's. However it ends, its result says why,
 * includes its reply so far, and lists which of its calls took effect. Undoing the call undoes what the agent did.
 *
 * @returns The tool. Its input is the task, as text.
 * @throws {@link SettingsError} when an option is not valid.
 *
 * @example
 * ```ts
 * import { createAgentTool, createAgent } from '@whoa/core';
 *
 * const research = createAgentTool(agent, { name: 'research', description: 'Looks something up' });
 * const lead = createAgent({ name: 'lead', model, tools: [research] });
 * ```
 */
export function createAgentTool(given: Agent, asked: AgentToolOptions): Tool<{ readonly task: string }> {
  const agent = having('an agent', 'run')(given, 'agent') as Agent;
  const options = readSettings<AgentToolOptions>(asked, { name: text, description: required(text) });
  if (measureDepth(agent) >= MAX_DEPTH) throw new SettingsError('agent', TOO_DEEP);
  const tool = defineTool<Task>({
    name: options.name ?? agent.name,
    description: options.description,
    inputSchema: taskSchema,
    inputJsonSchema: {
      type: 'object',
      properties: { task: { type: 'string', description: 'What to do, with everything needed to do it.' } },
      required: ['task'],
      additionalProperties: false,
    },
    effects: worstEffects(agent),
    async execute({ task }, given) {
      const { token, context, emitNested, [NESTED]: parent }: WithNested<ToolContext, NestedContext> = given;
      const { path = [], recorder } = parent ?? {};
      if (path.length > MAX_DEPTH) throw new Error(TOO_DEEP);
      // An agent of another make cannot continue what a lost worker left.
      const before = RESUMED in agent ? await recorder?.resume(path, agent) : undefined;
      if (before !== undefined && 'answer' in before) return toEarlierResult(before.answer, agent);
      const any = recorder === undefined ? emitNested : withVersion(agent, emitNested);
      const options: InnerRunOptions = { token, context, hooks: { any }, ...(parent && { [NESTED]: parent }) };
      const run = before === undefined ? agent.run(task, options) : continueRun(agent, before, options);
      parent?.enter(getNestedRun(run));
      const outcome = await run.outcome;
      const had = toToolResult(outcome, agent, before?.results as readonly CallResult[]);
      if (outcome.status === 'failed') throw new AgentFailedError(outcome.error, had);
      const result = { ...had, content: had.content === '' ? '(no answer)' : had.content };
      if (outcome.status === 'cancelled') throw new CancelledError(outcome.reason, { partial: result });
      return result;
    },
    // Called only if nothing of the run is known: otherwise its calls are undone one by one.
    undo() {
      throw new Error('the record of this run was removed, so it cannot be undone');
    },
  });
  const { [MODELS]: models } = given as WithModels<Agent>;
  // A task that no worker holds undoes what the agent did with its tools.
  const nested: WithModels<WithNested<typeof tool, Agent>> = { ...tool, [NESTED]: agent, [MODELS]: models };
  return nested;
}

/** How deep agents may be inside each other. */
const MAX_DEPTH = 8;
const TOO_DEEP = `agents can be at most ${MAX_DEPTH} deep inside each other`;

/** How many agents are inside each other below an agent. A custom agent may not list its tools. */
function measureDepth({ tools = [] }: Partial<Agent>): number {
  return tools.reduce((deepest, tool: WithNested<Tool, Agent>) => {
    const inner = tool[NESTED];
    return inner === undefined ? deepest : Math.max(deepest, 1 + measureDepth(inner));
  }, 0);
}

/** The journal of a task says which version of the agent ran, for a worker that continues it. */
function withVersion({ version }: Agent, emit: ToolContext['emitNested']): ToolContext['emitNested'] {
  const started = version === undefined ? {} : { version };
  return (event) => emit(event.type === 'run-start' ? { ...event, ...started } : event);
}

/** Continues a run that a lost worker left. */
function continueRun(agent: Agent, before: NestedLeft, options: InnerRunOptions): Run {
  const { history, left, input = '', notice, spent } = before as unknown as ResumedRun;
  const run = agent.run(input, { ...options, history, [RESUMED]: { ...spent, left } } as RunOptions);
  if (notice !== undefined) run.steer(notice);
  return run;
}

interface ResumedRun extends Pick<NestedLeft, 'spent'> {
  readonly history: readonly Message[];
  readonly left?: readonly Call[];
  readonly input?: UserMessage;
  readonly notice?: UserMessage;
}

/** The result of a run that had ended before its worker was lost. */
function toEarlierResult(answer: string, { name }: Agent): ToolResult {
  const content = answer === '' ? '(no answer)' : answer;
  return { content, details: { agent: name, status: 'success', effects: [] } };
}

/** What a call of an agent can do: what its tools can. A custom agent may not list them. */
function worstEffects({ tools }: Partial<Agent>): Effects {
  if (tools === undefined) return 'execute';
  return (['execute', 'write'] as const).find((worst) => tools.some(({ effects }) => effects === worst)) ?? 'read';
}

/** Thrown by the call of an agent that failed. `partial` is the agent's reply and effects so far. */
class AgentFailedError extends Error {
  override readonly name: string = 'AgentFailedError';
  readonly partial: ToolResult;

  constructor(cause: unknown, partial: ToolResult) {
    super(describeError(cause), { cause });
    this.partial = partial;
  }
}

/** The agent and its runs may be custom implementations. */
function getNestedRun(run: WithNested<Run, NestedRun>): NestedRun {
  return run[NESTED] ?? { outcome: run.outcome, undoSteps: () => [{ order: 0, undo: () => undoWhole(run) }] };
}

function toToolResult(
  ended: Outcome,
  agent: Partial<Agent>,
  before: readonly CallResult[] = [],
): ToolResult & { readonly details: Json } {
  const outcome = { ...ended, calls: [...before, ...ended.calls] };
  const { runId, status, turns } = outcome;
  const effects = collectEffects(outcome, agent.tools ?? []);
  // A complete reply needs no list of effects.
  const summary = status === 'success' ? '' : describeEffects(effects);
  const calls = outcome.calls.map(({ callId, tool, state }) => ({ callId, tool, state }));
  const usage = { ...outcome.usage };
  const why = status === 'cancelled' && { reason: { ...outcome.reason } };
  return {
    content: [describeWork(outcome), summary].filter((text) => text !== '').join('\n\n'),
    details: { runId, agent: outcome.agent, status, turns, usage, ...why, calls, effects },
  };
}

const MAX_REPLY_CHARACTERS = 8_000;

/** The answer of a run; of one that was cut off, the end of everything it said, and how many calls it finished. */
function describeWork({ status, text, messages, calls }: Outcome): string {
  const replies = messages
    .flatMap((message) => (message.role === 'assistant' ? [toReplyText(message)] : []))
    .filter(Boolean);
  if (status === 'success') return text || (replies.at(-1) ?? '');
  const all = replies.join('\n\n');
  const end = all.length > MAX_REPLY_CHARACTERS ? `…${all.slice(-MAX_REPLY_CHARACTERS).toWellFormed()}` : all;
  const done = calls.filter(({ state }) => state === 'finished').map(({ tool }) => tool);
  const count = done.length === 0 ? '' : `Finished calls: ${done.length} (${[...new Set(done)].join(', ')}).`;
  return [end, count].filter(Boolean).join('\n\n');
}

/** A call that changed something, or may have. */
interface Effect {
  readonly [key: string]: string;
  readonly tool: string;
  readonly state: string;
  readonly content: string;
}

const MAX_EFFECT_CHARACTERS = 300;

function collectEffects(outcome: Outcome, tools: readonly Tool[]): Effect[] {
  const undone = new Set(
    outcome.status === 'cancelled'
      ? outcome.stop.calls.flatMap(({ callId, undo }) => (undo === 'undone' ? [callId] : []))
      : [],
  );
  return outcome.calls.flatMap((call): Effect[] => {
    const tool: WithNested<Tool, Agent> | undefined = tools.find(({ name }) => name === call.tool);
    if (tool?.[NESTED]) return findInnerEffects(call);
    const isEffect = call.state === 'finished' || call.state === 'interrupted' || call.state === 'unknown';
    if (!isEffect || tool?.effects === 'read' || undone.has(call.callId)) return [];
    return [{ tool: call.tool, state: call.state, content: toText(call.content).slice(0, MAX_EFFECT_CHARACTERS) }];
  });
}

function findInnerEffects(call: CallResult): Effect[] {
  const { effects = [] } = (findUndoData(call)?.details ?? call.details ?? {}) as { effects?: readonly Effect[] };
  return effects.map((effect) => ({ ...effect, tool: `${call.tool} › ${effect.tool}` }));
}

function describeEffects(effects: readonly Effect[]): string {
  const lines = effects.map((one) => `- ${one.tool} (${one.state}): ${one.content}`);
  return lines.length === 0 ? '' : ['What it did before that:', ...lines].join('\n');
}
