import type { World } from '../stop/clock.ts';
import type { Hooks } from '../stop/hooks.ts';
import {
  anything,
  callback,
  having,
  hooks,
  nonEmptyText,
  type Rules,
  readSettings,
  required,
  SettingsError,
} from '../stop/settings.ts';
import { type StopMode, stopMode } from '../stop/token/level.ts';
import { shieldMs } from '../stop/token/shield.ts';
import { SOURCE_RULES } from '../stop/token/source.ts';
import type { CancellationToken } from '../stop/token/token.ts';
import type { Ledger } from '../stop/work/ledger.ts';
import type { Approve, BeforeCall } from '../tool/call/call.ts';
import type { NESTED, NestedContext } from '../tool/call/nested.ts';
import type { Redact } from '../tool/redact.ts';
import { SHARED_RULES } from '../tool/runtime.ts';
import { type Tool, toolsRule } from '../tool/tool.ts';
import { type Budgets, budgetsRule } from './budget.ts';
import type { Message } from './history/message.ts';
import type { BeforeTurn, Compact } from './loop.ts';
import type { Model } from './reply/model.ts';
import { MODEL_RULES, type RetryOptions } from './reply/model-planner.ts';
import type { Planner } from './reply/planner.ts';
import type { RunEvent } from './report/events.ts';
import type { BeforeUndo } from './undo.ts';

/** What an agent is made of: a model, or a planner of your own. */
export type AgentOptions = AgentParts &
  (
    | {
        readonly model: Model;
        readonly instructions?: string;
        readonly retry?: RetryOptions;
        /** A reply that is longer fails; 4,000,000 by default. */
        readonly maxReplyCharacters?: number;
        readonly planner?: undefined;
      }
    | { readonly planner: Planner; readonly model?: undefined }
  );

/** Everything about an agent except who decides. */
export interface AgentParts {
  readonly name: string;
  readonly tools?: readonly Tool[];
  /** What `run.cancel()` means when it does not say; `graceful` by default. */
  readonly ladder?: StopMode;
  readonly approve?: Approve;
  readonly budgets?: Budgets;
  readonly compact?: Compact;
  readonly hooks?: Hooks<RunEvent>;
  readonly concurrency?: number;
  readonly cleanupMs?: number;
  readonly undoMs?: number;
  readonly ledger?: Ledger;
  readonly world?: World;
}

/** What one run may be told. */
export interface RunOptions {
  readonly id?: string;
  readonly history?: readonly Message[];
  readonly hooks?: Hooks<RunEvent>;
  /** Awaited before each turn. The run fails if it throws; a cancel ends the wait. */
  readonly beforeTurn?: BeforeTurn | undefined;
  /** Where a journal writes a call down before it begins, so that a crash never makes it run twice. */
  readonly beforeCall?: BeforeCall | undefined;
  /** Where a journal writes an undo down before it begins, so that a crash never makes it begin twice. */
  readonly beforeUndo?: BeforeUndo | undefined;
  /** Takes out of results what must not go on: to observers, the model or a journal. Inputs are never changed. */
  readonly redact?: Redact | undefined;
  /** Who may cancel the run from above; a signal means `now`. */
  readonly token?: CancellationToken | undefined;
  readonly signal?: AbortSignal | undefined;
  /** For a run inside a call. */
  readonly [NESTED]?: NestedContext;
}

/** An agent's settings, with whatever says who decides. */
type AllAgentOptions = AgentParts & {
  readonly model?: Model;
  readonly instructions?: string;
  readonly retry?: RetryOptions;
  readonly maxReplyCharacters?: number;
  readonly planner?: Planner;
};

const AGENT_RULES: Rules<AllAgentOptions> = {
  ...SHARED_RULES,
  ...MODEL_RULES,
  name: required(nonEmptyText),
  tools: toolsRule,
  planner: having('a planner', 'next'),
  ladder: stopMode,
  budgets: budgetsRule,
  compact: callback,
  undoMs: shieldMs,
};

/** Checks what an agent is made of. */
export function readAgentOptions(given: AgentOptions): AgentOptions {
  const options = readSettings<AllAgentOptions>(given, AGENT_RULES);
  if (options.model !== undefined && options.planner !== undefined) {
    throw new SettingsError('planner', 'an agent has a model or a planner, not both');
  }
  if (options.model === undefined && options.planner === undefined) {
    const advice = 'for one of the AI SDK, fromAiSdk(model) from @whoa/ai-sdk';
    throw new SettingsError('model', `an agent needs a model (${advice}), or a planner of your own`);
  }
  return options as AgentParts as AgentOptions;
}

const RUN_RULES: Rules<RunOptions> = {
  id: nonEmptyText,
  // What was said before is read when the run begins: it is data, and fails the run if it is no history.
  history: anything,
  hooks,
  redact: callback,
  beforeCall: callback,
  beforeTurn: callback,
  beforeUndo: callback,
  ...SOURCE_RULES,
};

/** Checks what one run is told. */
export function readRunOptions(given: RunOptions): RunOptions {
  return readSettings<RunOptions>(given, RUN_RULES);
}
