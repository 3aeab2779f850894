import { type AppContext, contextRule } from '../stop/app-context.ts';
import type { LateResults } from '../stop/bounded/late-results.ts';
import type { World } from '../stop/clock.ts';
import type { Hooks } from '../stop/hooks.ts';
import * as settings from '../stop/settings.ts';
import { type StopMode, stopMode } from '../stop/token/level.ts';
import { shieldMs } from '../stop/token/shield.ts';
import { SOURCE_RULES } from '../stop/token/source.ts';
import type { CancellationToken } from '../stop/token/token.ts';
import type { AnswerCall, Approve, BeforeCall, Call } from '../tool/call/call.ts';
import type { NestedContext, NestedRecorder, WithNested } from '../tool/call/nested.ts';
import type { Redact } from '../tool/redact.ts';
import { SHARED_RULES } from '../tool/runtime.ts';
import { type Tool, toolsRule } from '../tool/tool.ts';
import { type Budgets, budgetsRule, type Spent } from './budget.ts';
import type { Message } from './history/message.ts';
import type { BeforeTurn, Compact } from './loop.ts';
import type { Model } from './reply/model.ts';
import { MODEL_RULES, type RetryOptions } from './reply/model-planner.ts';
import type { Planner } from './reply/planner.ts';
import type { RunEvent } from './report/events.ts';
import type { BeforeUndo } from './undo.ts';

/** Options of an agent: a model, or your own planner. */
export type AgentOptions = AgentParts &
  (
    | {
        readonly model: Model;
        readonly instructions?: string | undefined;
        readonly retry?: RetryOptions | undefined;
        readonly planner?: undefined;
      }
    | { readonly planner: Planner; readonly model?: undefined }
  );

/** The options of an agent except the model or planner. */
export interface AgentParts {
  readonly name: string;
  /**
   * The version of the agent, for tasks that are resumed after a deploy. Defaults to a hash of its instructions and of
   * the tools as the model sees them. Name it yourself if what matters is elsewhere: in code, in a model.
   */
  readonly version?: string | undefined;
  readonly tools?: readonly Tool[] | undefined;
  /** The default mode of `run.cancel()`. Defaults to `graceful`. */
  readonly stopMode?: StopMode | undefined;
  readonly approve?: Approve | undefined;
  /** Gets the answers to calls of tools with `answeredBy`, in a run that is not a task. Without it they are not started. */
  readonly answer?: AnswerCall | undefined;
  readonly budgets?: Budgets | undefined;
  readonly compact?: Compact | undefined;
  readonly hooks?: Hooks<RunEvent> | undefined;
  readonly concurrency?: number | undefined;
  readonly cleanupTimeoutMs?: number | undefined;
  readonly undoTimeoutMs?: number | undefined;
  readonly lateResults?: LateResults | undefined;
  readonly world?: World | undefined;
}

/** Options of one run. */
export interface RunOptions {
  readonly id?: string | undefined;
  /** Identifies the work that this run is a part of, for tools that keep something for it. Defaults to the run's id. */
  readonly workId?: string | undefined;
  readonly history?: readonly Message[] | undefined;
  /** Passed to tools, hooks, `approve` and sub-agents. Plain data, at most 16 KB as JSON. */
  readonly context?: AppContext | undefined;
  readonly hooks?: Hooks<RunEvent> | undefined;
  /** Awaited before each turn. The run fails if it throws; a cancel ends the wait. */
  readonly beforeTurn?: BeforeTurn | undefined;
  /** Awaited before each request that is paid from `budgets.usd`. A journal records what is reserved for it here. */
  readonly beforeRequest?: (() => unknown) | undefined;
  /** Awaited before each call starts. A journal records the call here, so that a crash never makes it run twice. */
  readonly beforeCall?: BeforeCall | undefined;
  /** Replaces `answer` of the agent. */
  readonly answer?: AnswerCall | undefined;
  /** Awaited before each undo starts. A journal records the undo here, so that a crash never makes it start twice. */
  readonly beforeUndo?: BeforeUndo | undefined;
  /** Removes secrets from results before observers, the model or a journal see them. Inputs are never changed. */
  readonly redact?: Redact | undefined;
  /** Limits of this run. Each replaces that limit of the agent. */
  readonly budgets?: Budgets | undefined;
  /** Cancels the run. A signal means `now`. */
  readonly token?: CancellationToken | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Adds what runs inside calls use, and runs that continue one of a lost worker. */
export type InnerRunOptions = WithNested<RunOptions, NestedContext> & {
  readonly [RESUMED]?: Spent & { readonly left?: readonly Call[] | undefined; readonly recorder?: NestedRecorder };
};

/**
 * The key of what a run continues. `left` are calls of the last reply in its history that have no result yet and were not
 * started. In an agent, the key of its `approve`: for calls that run again outside a run.
 */
export const RESUMED: unique symbol = Symbol.for('@whoa/core/resumed');

/** An agent's settings, including the model or planner. */
type AllAgentOptions = AgentParts & {
  readonly model?: Model;
  readonly instructions?: string;
  readonly retry?: RetryOptions;
  readonly planner?: Planner;
};

const AGENT_RULES: settings.Rules<AllAgentOptions> = {
  ...SHARED_RULES,
  ...MODEL_RULES,
  name: settings.required(settings.nonEmptyText),
  version: settings.nonEmptyText,
  tools: toolsRule,
  planner: settings.having('a planner', 'next'),
  stopMode,
  budgets: budgetsRule,
  compact: settings.callback,
  undoTimeoutMs: shieldMs,
};

/** Checks the options of an agent. */
export function readAgentOptions(given: AgentOptions): AllAgentOptions {
  const options = settings.readSettings<AllAgentOptions>(given, AGENT_RULES);
  if (options.model !== undefined && options.planner !== undefined) {
    throw new settings.SettingsError('planner', 'an agent has a model or a planner, not both');
  }
  if (options.model === undefined && options.planner === undefined) {
    const advice = 'for an AI SDK model, use fromAiSdk(model) from @whoa/ai-sdk';
    throw new settings.SettingsError('model', `an agent needs a model (${advice}), or your own planner`);
  }
  return options;
}

const RUN_RULES: settings.Rules<RunOptions> = {
  id: settings.nonEmptyText,
  workId: settings.nonEmptyText,
  // Not checked here: the history is data and is read when the run starts. An invalid one fails the run.
  history: settings.anything,
  context: contextRule,
  hooks: settings.hooks,
  redact: settings.callback,
  budgets: budgetsRule,
  beforeCall: settings.callback,
  answer: settings.callback,
  beforeTurn: settings.callback,
  beforeRequest: settings.callback,
  beforeUndo: settings.callback,
  ...SOURCE_RULES,
};

/** Checks the options of one run. */
export function readRunOptions(given: RunOptions): RunOptions {
  return settings.readSettings<RunOptions>(given, RUN_RULES);
}
