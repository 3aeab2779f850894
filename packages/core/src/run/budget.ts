import { count, group, type Rule, timeLimitMs } from '../stop/settings.ts';
import type { CancelReasonInit } from '../stop/token/reason.ts';
import type { Transcript } from './history/transcript.ts';
import type { Repeats } from './repeats.ts';

/** The limits of a run. A run that would exceed one is cancelled, with that as its reason. */
export interface Budgets {
  /** Time limit for the whole run. */
  readonly maxDurationMs?: number | undefined;
  /** Defaults to `MAX_TURNS`: a model and a tool that keep each other busy would otherwise never end. */
  readonly maxTurns?: number | undefined;
  readonly maxCalls?: number | undefined;
  /** Model tokens, in and out. */
  readonly maxModelTokens?: number | undefined;
  /**
   * How often the same call may be made in a row with the same result. Two more are not started and tell the model why;
   * after a third the limit is reached. Off by default.
   */
  readonly repeats?: number | undefined;
}

/** What earlier runs of the same task have used. */
export interface Spent {
  readonly turns: number;
  readonly calls: number;
  readonly tokens: number;
}

const limit = count({ min: 0, orInfinity: true });

/** The rule for budgets. */
export const budgetsRule: Rule = group<Budgets>({
  maxDurationMs: timeLimitMs,
  maxTurns: limit,
  maxCalls: limit,
  maxModelTokens: limit,
  repeats: count({ orInfinity: true }),
});

/** Enough for hours of work. `maxTurns: Infinity` removes the limit. */
export const MAX_TURNS = 1_000;

/** Returns why the next turn with `calls` more calls would exceed a limit, or `undefined` if it would not. */
export function overspent(
  budgets: Budgets,
  spent: {
    turn: number;
    calls: number;
    transcript: Transcript;
    before?: Spent | undefined;
    repeats?: Repeats | undefined;
  },
): CancelReasonInit | undefined {
  const { turns = 0, calls = 0, tokens = 0 } = spent.before ?? {};
  const { maxTurns = MAX_TURNS, maxCalls = Infinity, maxModelTokens = Infinity } = budgets;
  const { inputTokens, outputTokens } = spent.transcript.usage;
  if (turns + spent.turn > maxTurns) return over(`maxTurns of ${maxTurns}`);
  if (calls + spent.transcript.calls.length + spent.calls > maxCalls) return over(`maxCalls of ${maxCalls}`);
  if (tokens + inputTokens + outputTokens > maxModelTokens) return over(`maxModelTokens of ${maxModelTokens}`);
  if (spent.repeats?.isReached) return over(`repeats of ${spent.repeats.max}: it made the same call again and again`);
  return undefined;
}

function over(limit: string): CancelReasonInit {
  return { kind: 'budget', message: `the run reached its ${limit}` };
}
