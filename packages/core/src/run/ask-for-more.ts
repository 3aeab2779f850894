import type { AppContext } from '../stop/app-context.ts';
import type { CancelReasonInit } from '../stop/token/reason.ts';
import type { CancellationToken } from '../stop/token/token.ts';
import { waitUntilLevel } from '../stop/wait.ts';
import type { Budgets } from './budget.ts';
import type { BudgetQuestion, Reached } from './budget-question.ts';
import type { UnstampedEvent } from './report/events.ts';
import type { Leftovers } from './report/leftovers.ts';

interface Asking {
  readonly runId: string;
  readonly budgets: Budgets;
  readonly token: CancellationToken;
  readonly context: AppContext | undefined;
  readonly emit: (event: UnstampedEvent) => void;
  readonly leaveRunning: Leftovers['add'];
}

/** Asks for more, if the run may ask, and stops it otherwise. Returns how much more; 0 if the run was stopped. */
export async function askForMore(reached: Reached, asking: Asking): Promise<number> {
  const { budgets, token, runId, emit } = asking;
  const { limit, used, of, what, ask } = reached;
  const stop = (reason: CancelReasonInit): number => {
    token.cancel(reason, { mode: 'now' });
    return 0;
  };
  if (budgets.onReached !== 'ask') return stop({ kind: 'budget', message: reached.message });
  const question: BudgetQuestion = { runId, limit, used, of, text: `${what}. ${ask}` };
  emit({ type: 'budget-asked', limit, text: question.text });
  const more = token.isCancelled ? 0 : await waitForMore(question, asking);
  if (token.isCancelled) return 0;
  emit({ type: 'budget-answered', limit, more });
  return more > 0 ? more : stop({ kind: 'budget', message: `${reached.message}; no more was given` });
}

/** Only a clear amount is a yes. */
async function waitForMore(
  question: BudgetQuestion,
  { budgets, token, context, leaveRunning }: Asking,
): Promise<number> {
  const own = token.child({ name: 'budget question', minimumLevel: 'abort' });
  try {
    const answering = Promise.resolve(question).then((asked) => budgets.ask!(asked, { signal: own.signal, context }));
    const end = await waitUntilLevel(answering, token, 'drain');
    if (end.by === 'level') leaveRunning('budgets.ask', answering, 0);
    const more = end.by === 'value' && end.value !== 'no' ? (end.value as { more?: unknown } | undefined)?.more : 0;
    return typeof more === 'number' && Number.isFinite(more) && more > 0 ? more : 0;
  } finally {
    own[Symbol.dispose]();
  }
}
