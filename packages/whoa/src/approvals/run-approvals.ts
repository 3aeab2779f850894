import { type ApprovalAnswer, type ApprovalQuestion, type Ask, createApprovals, type Judge } from '@whoa/core/approval';
import type { TaskApprovals } from '@whoa/tasks';
import { WITHDRAWN } from '../terminal/ask.ts';

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
 * Approvals of runs in this terminal, one run at a time. Each question is asked here and published, so that it can also
 * be answered from elsewhere. The first answer counts, and the question is withdrawn in the other place.
 */
export function createRunApprovals({ ask, judge, until, onRemoteAnswer }: RunApprovalsOptions): TaskApprovals {
  let publish: (question: ApprovalQuestion) => () => void = () => () => {};
  const waiting = new Map<string, (answer: ApprovalAnswer) => void>();
  const askBoth: Ask = async (question, { signal }) => {
    const withdrawing = new AbortController();
    const withdraw = (): void => withdrawing.abort();
    let remote: ApprovalAnswer | undefined;
    // Don't publish what no one can answer any more.
    if (signal.aborted) return WITHDRAWN;
    const close = publish(question);
    waiting.set(question.callId, (answer) => {
      remote ??= answer;
      close();
      withdraw();
    });
    signal.addEventListener('abort', withdraw, { once: true });
    try {
      const typed = await ask(question, { signal: withdrawing.signal });
      if (remote === undefined || typed !== WITHDRAWN) return typed;
      onRemoteAnswer(remote);
      return remote;
    } finally {
      waiting.delete(question.callId);
      close();
      signal.removeEventListener('abort', withdraw);
    }
  };
  return {
    approve: createApprovals({ ask: askBoth, until, judge }),
    during(task, work) {
      publish = task.publish;
      return work();
    },
    // Without a question there is nothing to answer: what was sent before it was shown is not kept.
    answer: (_, { callId, approved, remember = false }) =>
      waiting.get(callId)?.({
        decision: approved === true ? (remember ? 'always' : 'yes') : remember ? 'never' : 'no',
        ...(typeof approved === 'string' && { why: approved }),
      }),
    // A question leaves with its answer. Don't clear them: the next attempt may have asked already.
    forget: () => {},
  };
}
