import type { CancellationToken } from '../../stop/token/token.ts';
import type { Call } from '../../tool/call/call.ts';
import type { AssistantMessage, AssistantPart, Message } from '../history/message.ts';
import type { TurnEvent } from '../report/events.ts';

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

/** Decides the next step. A model is one planner; a fixed plan is another. */
export interface Planner {
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
