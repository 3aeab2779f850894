import type { Question, TaskRecord } from '@whoa/tasks';

/** What is reported about questions. `question.closed`: no one answered it. */
export type QuestionEvent = 'question.asked' | 'question.answered' | 'question.closed';

export const QUESTION_EVENTS: readonly QuestionEvent[] = ['question.asked', 'question.answered', 'question.closed'];

interface QuestionReport {
  readonly type: QuestionEvent;
  /** Unique, and without dots: it is signed between them. */
  readonly id: string;
  readonly body: string;
}

/** Returns what can be reported about the questions of a task now. */
export function toQuestionReports(task: TaskRecord): readonly QuestionReport[] {
  return (task.questions ?? []).flatMap((question) => {
    const { answer, closed } = question;
    const asked = report(task, question, { type: 'question.asked', at: question.askedAt });
    if (answer !== undefined) {
      const { by, at } = answer;
      return [asked, report(task, question, { type: 'question.answered', at, by, answeredAt: at })];
    }
    if (closed === undefined) return [asked];
    const { why, at } = closed;
    return [asked, report(task, question, { type: 'question.closed', at, why, closedAt: at })];
  });
}

/** Without what was shown and answered, which may be private: the receiver reads the task if it needs more. */
function report(
  { id: task, tenant, agent, conversation, startedBy }: TaskRecord,
  { id, callId, kind, askedAt, expiresAt }: Question,
  { type, at, ...more }: { readonly type: QuestionEvent; readonly at: number; readonly [more: string]: unknown },
): QuestionReport {
  const data = { id, task, tenant, agent, conversation, startedBy, callId, kind, askedAt, expiresAt, ...more };
  const body = JSON.stringify({ type, timestamp: new Date(at).toISOString(), data });
  return { type, id: `${id}/${type}`.replaceAll('.', '/'), body };
}
