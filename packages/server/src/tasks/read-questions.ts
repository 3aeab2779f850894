import type { ApprovalQuestion } from '@whoa/core/approval';
import type { JournalEvent, Question, TaskRecord, TaskRef, TaskStore } from '@whoa/tasks';

/** A question about a call, as the journal of its task has it. */
export interface AskedQuestion extends Pick<Question, 'id' | 'callId' | 'kind'> {
  /** Everything that was shown. */
  readonly question: ApprovalQuestion;
  /** The JSON Schema of the answer, if it is known. */
  readonly schema?: Extract<JournalEvent, { type: 'question-asked' }>['schema'];
}

/** Returns whether a question waits for an answer. */
export function isOpen({ answer, closed }: Question): boolean {
  return answer === undefined && closed === undefined;
}

/** Reads the questions of a task that wait for an answer now. */
export async function readOpenQuestions(store: TaskStore, task: TaskRecord): Promise<readonly AskedQuestion[]> {
  const open = (task.questions ?? []).filter(isOpen);
  if (open.length === 0) return [];
  const asked = await readQuestions(store, task);
  return open.flatMap(({ id }) => {
    const known = asked.get(id);
    return known === undefined || known.isAnswered ? [] : [known];
  });
}

/** Reads all questions that a task has asked so far, by id. */
export async function readQuestions(
  store: TaskStore,
  { tenant, id }: TaskRef,
): Promise<ReadonlyMap<string, AskedQuestion & { readonly isAnswered: boolean }>> {
  const questions = new Map<string, AskedQuestion & { isAnswered: boolean }>();
  for (let after: number | undefined = 0; after !== undefined; ) {
    const entries = await store.read({ tenant, id }, { after });
    for (const { event } of entries as unknown as readonly { event: JournalEvent }[]) {
      const asked = findQuestion(event);
      if (asked) questions.set(asked.id, { ...asked, isAnswered: false });
      const ended = findAnsweredCall(event);
      if (ended === undefined) continue;
      // The calls of a sub-agent have ids that start with that of the call around it.
      for (const one of questions.values()) if (`${one.callId}/`.startsWith(`${ended}/`)) one.isAnswered = true;
    }
    after = entries.at(-1)?.position;
  }
  return questions;
}

/** Returns the question that an event asks. */
function findQuestion(event: JournalEvent): AskedQuestion | undefined {
  if (event.type !== 'approval-question' && event.type !== 'question-asked') return undefined;
  const { id, question } = event;
  const { kind, schema } = event.type === 'question-asked' ? event : { kind: 'approve' as const, schema: undefined };
  return { id, callId: question.callId, kind, question, ...(schema && { schema }) };
}

/** Returns the call whose question an event closes. */
function findAnsweredCall(event: JournalEvent): string | undefined {
  if (event.type === 'call-end') return event.result.callId;
  return event.type === 'approval-answered' || event.type === 'question-closed' ? event.callId : undefined;
}
