import { type ApprovalAnswer, type Ask, createApprovals, type Judge } from '@whoa/core/approval';
import type { TaskApprovals } from '@whoa/tasks';
import type { AskingTask } from '@whoa/tasks/internal';
import { WITHDRAWN } from '../terminal/ask.ts';
import { userName } from '../terminal/interrupts.ts';

export interface RunApprovalsOptions {
  /** Asks in this terminal. */
  readonly ask: Ask;
  readonly judge: Judge;
  /** How long an `always` is valid, as text. */
  readonly until: string;
  /** Called when a question was answered from elsewhere. */
  readonly onRemoteAnswer: (answer: ApprovalAnswer) => void;
}

/**
 * Approvals of runs in this terminal, one run at a time. Each question is asked here and through the store, so that it can
 * also be answered from elsewhere. The first answer counts, and the question is withdrawn in the other place.
 */
export function createRunApprovals({ ask, judge, until, onRemoteAnswer }: RunApprovalsOptions): TaskApprovals {
  let asking: AskingTask | undefined;
  const askBoth: Ask = async (question, context, about) => {
    if (asking === undefined) return ask(question, context, about);
    const withdrawing = new AbortController();
    // The user sits here and is not asked again: a tool refuses what has changed since it was shown.
    const same = { ...about, describeAgain: () => Promise.resolve(question) };
    const stored = asking.ask(question, context, same).finally(() => withdrawing.abort());
    const typed = await ask(question, { ...context, signal: withdrawing.signal }, about);
    if (typed !== WITHDRAWN) await asking.answer(question.callId, typed, userName());
    const answer = await stored;
    if (typed === WITHDRAWN && !context.signal.aborted) onRemoteAnswer(answer);
    return answer;
  };
  return {
    // A user sits here: the run stays.
    parkAfterMs: Infinity,
    approve: createApprovals({ ask: askBoth, alwaysUntil: until, decide: judge }),
    runInTask(task, work) {
      asking = task;
      return work();
    },
  };
}
