import type { World } from '../stop/clock.ts';
import type { Hooks } from '../stop/hooks.ts';
import type { Ledger } from '../stop/ledger.ts';
import type { StopHow } from '../stop/level.ts';
import type { CancellationToken } from '../stop/token.ts';
import type { Approve, BeforeCall } from '../tool/call.ts';
import type { Tool } from '../tool/tool.ts';
import type { Budgets } from './budget.ts';
import type { RunEvent } from './events.ts';
import type { Compact } from './loop.ts';
import type { Message } from './message.ts';
import type { Model } from './model.ts';
import type { Patience } from './model-planner.ts';
import type { Planner } from './planner.ts';
import type { BeforeUndo } from './undo.ts';

/** What an agent is made of: a model, or a planner of your own. */
export type AgentOptions = AgentParts &
  (
    | {
        readonly model: Model;
        readonly instructions?: string;
        readonly patience?: Patience;
        readonly planner?: undefined;
      }
    | { readonly planner: Planner; readonly model?: undefined }
  );

/** Everything about an agent except who decides. */
export interface AgentParts {
  readonly name: string;
  readonly tools?: readonly Tool[];
  /** What `run.cancel()` means when it does not say; `graceful` by default. */
  readonly ladder?: StopHow;
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
  /** Where a journal writes a call down before it begins, so that a crash never makes it run twice. */
  readonly beforeCall?: BeforeCall | undefined;
  /** Where a journal writes an undo down before it begins, so that a crash never makes it begin twice. */
  readonly beforeUndo?: BeforeUndo | undefined;
  /** Who may cancel the run from above; a signal means `now`. */
  readonly token?: CancellationToken | undefined;
  readonly signal?: AbortSignal | undefined;
}
