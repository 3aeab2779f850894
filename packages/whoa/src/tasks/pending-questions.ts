import type { ApprovalQuestion } from '@whoa/core/approval';
import type { JournalEntry, TaskRecord } from '@whoa/tasks';
import type { TaskSource } from './source/task-source.ts';

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
    if (type === 'approval-answer') this.#pending.delete(callId ?? '');
    if (type === 'call-end') this.#pending.delete(result?.callId ?? '');
  }

  has({ id }: PendingQuestion): boolean {
    return this.list.some((one) => one.id === id);
  }
}

/** Reads the journal up to now, and returns the questions that wait for an answer. */
export async function readPending(source: TaskSource, { id, position }: TaskRecord): Promise<PendingQuestions> {
  const pending = new PendingQuestions();
  if (position === 0) return pending;
  await source.follow(id, {
    onEntry(entry) {
      pending.note(entry);
      return entry.position >= position ? 'stop' : undefined;
    },
    onRecord: () => 'stop',
  });
  return pending;
}
