import type { CancelReasonInit } from '../stop/reason.ts';
import { count, group, type Rule, timeLimitMs } from '../stop/settings.ts';
import type { Transcript } from './transcript.ts';

/** What a run may spend. A run that would spend more is cancelled, with that as its reason. */
export interface Budgets {
  /** Time for the whole run. */
  readonly deadlineMs?: number;
  /** `TURNS_MAX` unless said otherwise: a model and a tool that keep each other busy would never end. */
  readonly turnsMax?: number;
  readonly callsMax?: number;
  /** Model tokens, in and out. */
  readonly modelTokensMax?: number;
}

const limit = count({ min: 0, orInfinity: true });

/** The rule for budgets. */
export const budgetsRule: Rule = group<Budgets>({
  deadlineMs: timeLimitMs,
  turnsMax: limit,
  callsMax: limit,
  modelTokensMax: limit,
});

/** Enough for hours of work; `turnsMax: Infinity` lifts it. */
export const TURNS_MAX = 1_000;

/** Why the next turn with `calls` more calls would be too much; `undefined` if it is not. */
export function overspent(
  budgets: Budgets,
  spent: { turn: number; calls: number; transcript: Transcript },
): CancelReasonInit | undefined {
  const { turnsMax = TURNS_MAX, callsMax = Infinity, modelTokensMax = Infinity } = budgets;
  const { inputTokens, outputTokens } = spent.transcript.usage;
  if (spent.turn > turnsMax) return over(`turnsMax of ${turnsMax}`);
  if (spent.transcript.calls.length + spent.calls > callsMax) return over(`callsMax of ${callsMax}`);
  if (inputTokens + outputTokens > modelTokensMax) return over(`modelTokensMax of ${modelTokensMax}`);
  return undefined;
}

function over(limit: string): CancelReasonInit {
  return { kind: 'budget', message: `the run reached its ${limit}` };
}
