import type { Json } from '@whoa/core';
import type { ApprovalQuestion } from '@whoa/core/approval';
import type { QuestionKind } from '../question.ts';
import type { JournalEntry } from '../task.ts';

/** A question of a task that no one has answered yet. */
export interface PendingQuestion {
  /** A random id: only a client that has read the question can name it. */
  readonly id: string;
  /** The position of the question in the journal: where its entry is, not its name. */
  readonly asked: number;
  readonly kind: QuestionKind;
  readonly question: ApprovalQuestion;
  /** The JSON Schema of the answer, if it is known. */
  readonly schema?: { readonly [key: string]: Json | undefined };
}

/** The questions of a task, as its journal tells. */
export class PendingQuestions {
  readonly #pending = new Map<string, PendingQuestion>();

  get list(): readonly PendingQuestion[] {
    return [...this.#pending.values()];
  }

  /** Takes one more entry of the journal into account. */
  note({ event, position }: JournalEntry): void {
    const { type, id, question, callId, result, kind, schema } = event as Partial<PendingQuestion> & {
      readonly type?: string;
      readonly callId?: string;
      readonly result?: { readonly callId?: string };
    };
    const isAsked = type === 'approval-question' || type === 'question-asked';
    if (isAsked && typeof id === 'string' && Array.isArray(question?.fields)) {
      const known = { kind: kind ?? 'approve', ...(schema && { schema }) };
      this.#pending.set(question.callId, { id, asked: position, question, ...known });
    }
    if (type === 'approval-answered' || type === 'question-closed') this.#pending.delete(callId ?? '');
    // Its sub-agent's questions have ids that start with its own.
    if (type === 'call-end')
      for (const id of this.#pending.keys()) if (`${id}/`.startsWith(`${result?.callId}/`)) this.#pending.delete(id);
  }

  has({ id }: PendingQuestion): boolean {
    return this.list.some((one) => one.id === id);
  }
}
