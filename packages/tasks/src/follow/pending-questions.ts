import type { ApprovalQuestion } from '@whoa/core/approval';
import type { JournalEntry } from '../task.ts';

/** A question of a task that no one has answered yet. */
export interface PendingQuestion {
  /** A random id: only a client that has read the question can name it. */
  readonly id: string;
  /** The position in the journal. */
  readonly asked: number;
  readonly question: ApprovalQuestion;
}

/** The questions of a task, as its journal tells. */
export class PendingQuestions {
  readonly #pending = new Map<string, PendingQuestion>();

  get list(): readonly PendingQuestion[] {
    return [...this.#pending.values()];
  }

  /** Takes one more entry of the journal into account. */
  note({ event, position }: JournalEntry): void {
    const { type, id, question, callId, result } = event as {
      readonly type?: string;
      readonly id?: string;
      readonly callId?: string;
      readonly question?: ApprovalQuestion;
      readonly result?: { readonly callId?: string };
    };
    if (type === 'approval-question' && typeof id === 'string' && Array.isArray(question?.fields))
      this.#pending.set(question.callId, { id, asked: position, question });
    if (type === 'approval-answered' || type === 'question-closed') this.#pending.delete(callId ?? '');
    // Its sub-agent's questions have ids that start with its own.
    if (type === 'call-end')
      for (const id of this.#pending.keys()) if (`${id}/`.startsWith(`${result?.callId}/`)) this.#pending.delete(id);
  }

  has({ id }: PendingQuestion): boolean {
    return this.list.some((one) => one.id === id);
  }
}
