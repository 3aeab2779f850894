import { callback, count, group, oneOf, type Rule, rule, SettingsError, timeLimitMs } from '../stop/settings.ts';
import type { AskForMore, Reached } from './budget-question.ts';
import type { Transcript } from './history/transcript.ts';
import type { Repeats } from './repeats.ts';
import type { Spending } from './spending/account.ts';
import { type Prices, pricesRule } from './spending/price.ts';

/** The limits of a run. A run that would exceed one is cancelled, with that as its reason. */
export interface Budgets extends Prices {
  /** Money, for this run and all sub-agents inside it, in US dollars. Needs the prices of every model that they ask. */
  readonly usd?: number | undefined;
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
  /** What happens at a limit, except `maxDurationMs`: the run ends, or waits while `ask` gets more. Defaults to `stop`. */
  readonly onReached?: 'stop' | 'ask' | undefined;
  /** Asks a person for more. Anything but an amount above 0 means no, and ends the run. */
  readonly ask?: AskForMore | undefined;
}

/** What earlier runs of the same task have used. */
export interface Spent {
  readonly turns: number;
  readonly calls: number;
  readonly tokens: number;
  readonly spending?: Pick<Spending, 'spent' | 'estimated'> | undefined;
}

const limit = count({ min: 0, orInfinity: true });

/** The rule for budgets. */
export const budgetsRule: Rule = group<Budgets>({
  maxDurationMs: timeLimitMs,
  maxTurns: limit,
  maxCalls: limit,
  maxModelTokens: limit,
  repeats: count({ orInfinity: true }),
  usd: rule('more than 0 USD', (value) => Number.isFinite(value) && (value as number) > 0),
  prices: pricesRule,
  price: callback,
  onReached: oneOf('stop', 'ask'),
  ask: callback,
});

/** Enough for hours of work. `maxTurns: Infinity` removes the limit. */
export const MAX_TURNS = 1_000;

/** Checks the limits of a run together: asking needs someone who can be asked. */
export function checkAsking({ onReached, ask }: Budgets = {}): void {
  if (onReached === 'ask' && ask === undefined)
    throw new SettingsError(
      'budgets.ask',
      "onReached is 'ask', and no one can be asked; give a function that returns { more } or 'no'",
    );
}

/** Returns which limit the next turn with `calls` more calls would exceed, or `undefined` for none. */
export function overspent(
  budgets: Budgets,
  spent: {
    turn: number;
    calls: number;
    transcript: Transcript;
    before?: Spent | undefined;
    repeats?: Repeats | undefined;
  },
): Reached | undefined {
  const { turns = 0, calls = 0, tokens = 0 } = spent.before ?? {};
  const { maxTurns = MAX_TURNS, maxCalls = Infinity, maxModelTokens = Infinity } = budgets;
  const { inputTokens, outputTokens } = spent.transcript.usage;
  const turn = turns + spent.turn;
  if (turn > maxTurns) return reached({ limit: 'maxTurns', used: turn - 1, of: maxTurns }, 'turns taken');
  const made = calls + spent.transcript.calls.length;
  if (made + spent.calls > maxCalls) return reached({ limit: 'maxCalls', used: made, of: maxCalls }, 'tool calls made');
  const used = tokens + inputTokens + outputTokens;
  if (used > maxModelTokens) return reached({ limit: 'maxModelTokens', used, of: maxModelTokens }, 'tokens used');
  if (!spent.repeats?.isReached) return undefined;
  const { max } = spent.repeats;
  return {
    limit: 'repeats',
    used: max,
    of: max,
    ask: 'How often may it run again?',
    what: `The same tool call was made ${max === 1 ? 'once' : `${max} times`} with the same result, and is asked for again`,
    message: `the run reached its repeats of ${max}: it made the same call again and again`,
  };
}

type Counted = Pick<Reached, 'limit' | 'used' | 'of'>;

function reached({ limit, used, of }: Counted, what: string): Reached {
  const message = `the run reached its ${limit} of ${of}`;
  return { limit, used, of, what: `${used} of ${of} ${what}`, ask: 'How many more?', message };
}
