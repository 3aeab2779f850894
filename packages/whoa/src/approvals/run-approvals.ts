import { type ApprovalAnswer, type Ask, createApprovals } from '@whoa/core/approval';
import type { DecideApproval } from '@whoa/core/internal';
import type { TaskApprovals } from '@whoa/tasks';
import type { AskingTask } from '@whoa/tasks/internal';
import { WITHDRAWN } from '../terminal/ask.ts';
import { userName } from '../terminal/interrupts.ts';

export interface RunApprovalsOptions {
  /** Asks here: in this terminal, or in the editor. */
  readonly ask: Ask;
  readonly decide: DecideApproval;
  /** How long an `always` is valid, as text. */
  readonly until: string;
  /** Called when a question was answered from elsewhere. */
  readonly onRemoteAnswer: (answer: ApprovalAnswer) => void;
}

/**
 * Approvals of runs in this terminal or in one session of an editor, one run at a time. Each question is asked here and through the store, so that it can
 * also be answered from elsewhere. The first answer counts, and the question is withdrawn in the other place.
 */
export function createRunApprovals({ ask, decide, until, onRemoteAnswer }: RunApprovalsOptions): TaskApprovals {
  let asking: AskingTask | undefined;
  const askBoth: Ask = async (question, context, about) => {
    const task = asking;
    if (task === undefined) return ask(question, context, about);
    const withdrawing = new AbortController();
    // The user sits here and is not asked again: a tool refuses what has changed since it was shown.
    const same = { ...about, describeAgain: () => Promise.resolve(question) };
    const stored = task.ask(question, context, same).finally(() => withdrawing.abort());
    const typed = await ask(question, { ...context, signal: withdrawing.signal }, about);
    if (typed !== WITHDRAWN && !context.signal.aborted) await task.answer(question.callId, typed, userName());
    const answer = await stored;
    if (typed === WITHDRAWN && !context.signal.aborted) onRemoteAnswer(answer);
    return answer;
  };
  return {
    // A user sits here: the run stays.
    parkAfterMs: Infinity,
    approve: createApprovals({ ask: askBoth, alwaysUntil: until, decide }),
    runInTask(task, work) {
      asking = task;
      const working = work();
      const forget = (): void => {
        if (asking === task) asking = undefined;
      };
      Promise.resolve(working).then(forget, forget);
      return working;
    },
  };
}
