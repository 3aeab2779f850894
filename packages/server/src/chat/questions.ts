import { hash } from 'node:crypto';
import type { AnswerReceipt, JournalEvent, TaskRef, TaskStore } from '@whoa/tasks';
import { findQuestionTask } from '@whoa/tasks/internal';
import type { Principal } from '../access/principal.ts';
import type { ChatAnswer } from './chat-types.ts';

/** A question about a call. */
export interface AskedQuestion {
  readonly callId: string;
  isAnswered: boolean;
}

/** Returns the questions of a reply so far, by id. */
export async function readQuestions(store: TaskStore, ref: TaskRef): Promise<ReadonlyMap<string, AskedQuestion>> {
  const questions = new Map<string, AskedQuestion>();
  for (let after: number | undefined = 0; after !== undefined; ) {
    const entries = await store.read(ref, { after });
    for (const { event } of entries as unknown as readonly { event: JournalEvent }[]) {
      if (event.type === 'approval-question')
        questions.set(event.id, { callId: event.question.callId, isAnswered: false });
      if (event.type === 'approval-answered' || event.type === 'question-closed')
        for (const one of questions.values()) if (one.callId === event.callId) one.isAnswered = true;
    }
    after = entries.at(-1)?.position;
  }
  return questions;
}

/** Answers a question of a chat. */
export async function answerQuestion(
  store: TaskStore,
  { tenant, name }: Principal,
  { chatId, approvalId, ...value }: ChatAnswer,
): Promise<AnswerReceipt> {
  const id = findQuestionTask(approvalId);
  const task = id && (await store.get({ tenant, id }));
  if (!task || task.conversation !== chatId) return { result: 'not-found' };
  // A user who repeats an answer gets the same receipt.
  const nonce = hash('sha256', JSON.stringify([approvalId, name, value]), 'base64url');
  return store.answer({ tenant, id: approvalId }, { value, by: name }, { nonce });
}
