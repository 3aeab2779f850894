import type { QuestionContext } from '../tool/tool.ts';

/** A limit that can be raised while the run waits. */
export type RaisableLimit = 'usd' | 'maxTurns' | 'maxCalls' | 'maxModelTokens' | 'repeats';

/** A limit that a run has reached, as a question to a person. */
export interface BudgetQuestion {
  readonly runId: string;
  readonly limit: RaisableLimit;
  /** How much was used, in the unit of the limit. */
  readonly used: number;
  readonly of: number;
  /** For people: `4.98 of 5.00 USD spent in 12 turns. How much more?` */
  readonly text: string;
}

/** More, in the unit of the limit, or no: then the run ends. */
type BudgetAnswer = { readonly more: number } | 'no';

export type AskForMore = (question: BudgetQuestion, context: QuestionContext) => BudgetAnswer | Promise<BudgetAnswer>;

/** A limit that is reached. */
export interface Reached extends Pick<BudgetQuestion, 'limit' | 'used' | 'of'> {
  /** What was used, for people, and what they are asked. */
  readonly what: string;
  readonly ask: string;
  readonly message: string;
}
