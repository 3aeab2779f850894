import { hash } from 'node:crypto';
import type { Json } from '@whoa/core';
import { systemWorld } from '@whoa/core/embed';
import { parseAnswer } from '@whoa/core/internal';
import type { AnswerReceipt, TaskRef, TaskStore } from '@whoa/tasks';
import { findQuestionTask } from '@whoa/tasks/internal';
import type { UIMessage } from 'ai';
import type { Principal } from '../http/access/principal.ts';
import { HttpError } from '../http/http-error.ts';
import { type AnswerBody, answerFor } from '../tasks/answering.ts';
import { toRefusal } from '../tasks/questions.ts';
import { type AskedQuestion, isOpen, readQuestions } from '../tasks/read-questions.ts';
import type { PageAnswer } from './answers.ts';
import type { ChatRef } from './chat-history.ts';
import type { Chat, ChatAnswer, ChatAnswers, Continued } from './chat-types.ts';
import { getToolName, isCallPart } from './ui/call-parts.ts';

/** Returns whether questions of a task still wait for an answer. */
export async function areOpen(store: TaskStore, ref: TaskRef, ids: readonly string[]): Promise<boolean> {
  const { questions = [] } = (await store.get(ref)) ?? {};
  return ids.every((id) => questions.some((one) => one.id === id && isOpen(one)));
}

/**
 * Checks that a principal may give answers about the calls of a message of the application's own loop.
 *
 * @returns Who started the reply, and a function that records the approvals in the audit.
 * @throws HttpError, 403, if they may not.
 */
export async function checkAnswers(
  { store, access, agent }: Pick<Chat, 'store' | 'access' | 'agent'>,
  { who, chatId }: ChatRef,
  { message, answers }: { readonly message: UIMessage; readonly answers: readonly PageAnswer[] },
): Promise<{ readonly startedBy: string | undefined; readonly audit: (result: string) => void }> {
  const { tenant } = who;
  // The id of a reply's message is the id of its first task.
  const first = await store.get({ tenant, id: message.id });
  const approvals = answers.flatMap((answer) => ('approvalId' in answer ? [answer] : []));
  const asked = approvals.map(({ approvalId: id, toolCallId: callId }) => {
    const part = message.parts.filter(isCallPart).find((one) => one.toolCallId === callId)!;
    return { id, callId, kind: 'approve' as const, tool: getToolName(part), input: part.input };
  });
  const audit = (result: string): void => {
    for (const { id: question, callId, tool, input } of asked) {
      const shown = hash('sha256', JSON.stringify([tool, input ?? null]), 'base64url');
      const about = { target: message.id, callId, question, shown };
      access.audit(who, { type: 'approve', tenant, ...about, result });
    }
  };
  const startedBy = first?.startedBy;
  const task = { tenant, task: message.id, agent, conversation: chatId, ...(startedBy !== undefined && { startedBy }) };
  // Without the record no one can tell who started it.
  const open = first === undefined ? [] : asked.map((one) => ({ ...one, ...task }));
  const refused = asked.length === 0 ? undefined : await access.refuseAnswer(who, () => Promise.resolve(open));
  if (refused === undefined) return { startedBy: startedBy ?? (who.name || undefined), audit };
  audit('refused');
  throw new HttpError(403, refused);
}

/** Answers the questions of an agent's reply with what a page says about its calls. */
export async function answerReply(
  parts: Pick<Chat, 'store' | 'access'>,
  who: Principal,
  { chatId, given }: Pick<ChatAnswers, 'chatId' | 'given'>,
): Promise<Continued> {
  const { store } = parts;
  const { tenant } = who;
  const ref = { tenant, id: given.messageId };
  const task = await store.get(ref);
  const asked = task?.conversation === chatId ? [...(await readQuestions(store, ref)).values()] : [];
  let isAsked = false;
  for (const answer of given.answers) {
    const question = asked.findLast(({ id, callId, kind }) =>
      'approvalId' in answer ? id === answer.approvalId : callId === answer.toolCallId && kind !== 'approve',
    );
    if (question === undefined) continue;
    isAsked = true;
    // What was answered before, here or elsewhere, changes nothing.
    const { id, schema, isAnswered } = question;
    if (!isAnswered) await answerOnce(parts, who, { id, value: toValue(answer, schema) });
  }
  return { ...(isAsked && { ref }), isOwn: false };
}

/** Some protocols have only texts. */
function toValue(answer: PageAnswer, schema: AskedQuestion['schema']) {
  if ('output' in answer) {
    const output = (answer.output ?? null) as Json;
    return { answer: typeof output === 'string' && schema !== undefined ? parseAnswer(output, schema) : output };
  }
  if ('errorText' in answer) return { error: answer.errorText };
  const { approved, reason } = answer;
  return { decision: approved ? 'yes' : 'no', ...(reason !== undefined && !approved && { why: reason }) } as const;
}

/** Answers a question of a chat. Only a client that has read it knows its id. */
export async function answerQuestion(
  parts: Pick<Chat, 'store' | 'access'>,
  who: Principal,
  { chatId, approvalId, ...value }: ChatAnswer,
): Promise<'accepted'> {
  const id = findQuestionTask(approvalId);
  const task = id && (await parts.store.get({ tenant: who.tenant, id }));
  if (!task || task.conversation !== chatId) throw notAsked();
  const receipt = await answerOnce(parts, who, { id: approvalId, value });
  if (receipt.result === 'not-found') throw notAsked();
  if (receipt.result === 'too-late') throw toRefusal(receipt);
  return receipt.result;
}

export function notAsked(): HttpError {
  const message = 'There is no such question; it was answered, or its reply has ended';
  return new HttpError(409, { code: 'not-pending', message });
}

/** Answers a question. A user who repeats an answer gets the same receipt. */
function answerOnce(
  { store, access }: Pick<Chat, 'store' | 'access'>,
  who: Principal,
  { id, value }: { readonly id: string; readonly value: AnswerBody },
): Promise<AnswerReceipt> {
  const nonce = hash('sha256', JSON.stringify([id, who.name, value]), 'base64url');
  return answerFor(who, { tenant: who.tenant, id, value, nonce }, { store, access, world: systemWorld });
}
