import type { ApprovalAnswer } from '@whoa/core/approval';
import type { AnswerReceipt, TaskRef, TaskStore } from '@whoa/tasks';

/** Answers the open question about a call of a task, as a user who has read it. */
export async function answerCall(
  store: TaskStore,
  ref: TaskRef,
  { callId, ...value }: ApprovalAnswer & { readonly callId: string },
): Promise<AnswerReceipt> {
  const { questions = [] } = (await store.get(ref)) ?? {};
  const question = questions.findLast((one) => one.callId === callId);
  return store.answer({ tenant: ref.tenant, id: question?.id ?? `${ref.id}.none` }, { value, by: 'ann' });
}
