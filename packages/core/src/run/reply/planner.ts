import type { CancellationToken } from '../../stop/token/token.ts';
import type { Call } from '../../tool/call/call.ts';
import type { AssistantMessage, AssistantPart, Message } from '../history/message.ts';
import type { TurnEvent } from '../report/events.ts';
import type { ModelIds } from '../spending/price.ts';
import type { PaidRequest } from '../spending/requests.ts';

/** The next step: text for the user, calls to make, or both. A step without calls is the reply. */
export interface Step {
  readonly message: AssistantMessage;
  readonly calls: readonly Call[];
}

export interface PlannerContext {
  /**
   * Cancelled at any level means: stop now. Return a step with the text so far and `aborted` as its `stopReason`, or
   * throw `CancelledError` with that message as `partial`.
   */
  readonly token: CancellationToken;
  /** Starts at 1. Every turn after the first continues with the results of the last wave. */
  readonly turn: number;
  readonly emit: (event: TurnEvent) => void;
  /**
   * Reports work that was asked to end and has not yet, such as a stream that is being closed. The run waits briefly
   * for it, and names it if it is still running when the run settles.
   */
  readonly leaveRunning?: (name: string, ended: PromiseLike<unknown>) => void;
}

/** The key of what the requests of a turn are paid from. Between parts of this package. */
export const PAID: unique symbol = Symbol('paid');
/** The key of what a planner says about its requests. */
export const REQUESTS: unique symbol = Symbol('requests');

/** What is known about the requests of a planner before they are made. */
export interface PlannedRequests {
  readonly ids: ModelIds;
  /** What each request sends besides the history. */
  readonly fixedBytes: number;
  readonly maxOutputTokens?: number | undefined;
}

/** Returns what is known about the requests of a planner. One that names no model has no price. */
export function plannedRequests(planner: Planner & { readonly [REQUESTS]?: PlannedRequests }): PlannedRequests {
  return planner[REQUESTS] ?? { ids: [planner.model ?? 'a planner that names no model'], fixedBytes: 0 };
}

export interface PaidContext extends PlannerContext {
  readonly [PAID]?: PaidRequest | undefined;
}

/** Decides the next step. A model is one planner; a fixed plan is another. */
export interface Planner {
  /** The id of the model that it asks, if it asks one. With `budgets.usd` it is required, and each step reports its `usage`. */
  readonly model?: string | undefined;
  /** Decides the next step from the history. */
  next(history: readonly Message[], context: PlannerContext): Promise<Step> | Step;
}

/**
 * Creates a step that replies and makes no calls. It ends the run.
 *
 * @returns The step.
 */
export function reply(text: string): Step {
  return { message: { role: 'assistant', content: [{ type: 'text', text }], stopReason: 'stop' }, calls: [] };
}

/**
 * Creates a step that makes calls; they may depend on each other.
 *
 * @returns The step.
 */
export function callTools(calls: readonly Call[], text = ''): Step {
  const words: AssistantPart[] = text === '' ? [] : [{ type: 'text', text }];
  const parts = calls.map(({ id, tool, input }): AssistantPart => ({ type: 'call', callId: id, tool, input }));
  return { message: { role: 'assistant', content: [...words, ...parts], stopReason: 'tool-use' }, calls };
}
