import { hash } from 'node:crypto';
import type { Json } from '@whoa/core';
import { systemWorld } from '@whoa/core/embed';
import { parseAnswer } from '@whoa/core/internal';
import type { AnswerReceipt, JournalEvent, Question, TaskRef, TaskStore } from '@whoa/tasks';
import { findQuestionTask } from '@whoa/tasks/internal';
import type { UIMessage } from 'ai';
import type { Principal } from '../http/access/principal.ts';
import { HttpError } from '../http/http-error.ts';
import type { AnswerBody } from '../tasks/answer.ts';
import { answerFor, toShownDigest } from '../tasks/answering.ts';
import type { PageAnswer } from './answers.ts';
import type { ChatRef } from './chat-history.ts';
import type { ChatAnswer, ChatAnswers, ChatParts, Continued, CountedAnswer } from './chat-types.ts';
import { getToolName, isCallPart } from './ui/call-parts.ts';

type JsonSchema = NonNullable<Extract<JournalEvent, { type: 'question-asked' }>['schema']>;

/** A question about a call. */
export interface AskedQuestion {
  readonly callId: string;
  readonly kind: Question['kind'];
  /** The JSON Schema of the answer, if it is known. */
  readonly schema?: JsonSchema | undefined;
  isAnswered: boolean;
}

/** Returns the questions of a reply so far, by id. */
export async function readQuestions(store: TaskStore, ref: TaskRef): Promise<ReadonlyMap<string, AskedQuestion>> {
  const questions = new Map<string, AskedQuestion>();
  for (let after: number | undefined = 0; after !== undefined; ) {
    const entries = await store.read(ref, { after });
    for (const { event } of entries as unknown as readonly { event: JournalEvent }[]) {
      const asked = findQuestion(event);
      if (asked) questions.set(asked.id, { ...asked, isAnswered: false });
      const ended = findAnsweredCall(event);
      for (const one of questions.values()) if (one.callId === ended) one.isAnswered = true;
    }
    after = entries.at(-1)?.position;
  }
  return questions;
}

/** Returns the question that an event asks. */
export function findQuestion(event: JournalEvent): (Omit<AskedQuestion, 'isAnswered'> & { id: string }) | undefined {
  if (event.type !== 'approval-question' && event.type !== 'question-asked') return undefined;
  const { id, question } = event;
  const { kind, schema } = event.type === 'question-asked' ? event : { kind: 'approve' as const, schema: undefined };
  return { id, callId: question.callId, kind, schema };
}

/** Returns the call whose question an event closes. */
export function findAnsweredCall(event: JournalEvent): string | undefined {
  if (event.type === 'call-end') return event.result.callId;
  return event.type === 'approval-answered' || event.type === 'question-closed' ? event.callId : undefined;
}

/** Returns whether questions of a task still wait for an answer. */
export async function areOpen(store: TaskStore, ref: TaskRef, ids: readonly string[]): Promise<boolean> {
  const { questions = [] } = (await store.get(ref)) ?? {};
  const open = questions.filter(({ answer, closed }) => answer === undefined && closed === undefined);
  return ids.every((id) => open.some((one) => one.id === id));
}

/**
 * Checks that a principal may give answers about the calls of a message of the application's own loop.
 *
 * @returns What the audit records, and who started the reply.
 * @throws HttpError, 403, if they may not.
 */
export async function checkAnswers(
  { store, access, agent }: Pick<ChatParts, 'store' | 'access' | 'agent'>,
  { who, chatId }: ChatRef,
  { message, answers }: { readonly message: UIMessage; readonly answers: readonly PageAnswer[] },
): Promise<{ readonly counted: readonly CountedAnswer[]; readonly startedBy: string | undefined }> {
  const { tenant } = who;
  // The id of a reply's message is the id of its first task.
  const first = await store.get({ tenant, id: message.id });
  const approvals = answers.flatMap((answer) => ('approvalId' in answer ? [answer] : []));
  const asked = approvals.map(({ approvalId: id, toolCallId: callId }) => {
    const part = message.parts.filter(isCallPart).find((one) => one.toolCallId === callId)!;
    return { id, callId, kind: 'approve' as const, tool: getToolName(part), input: part.input };
  });
  const counted = asked.map(({ id, callId, tool, input }) => {
    return { target: message.id, callId, question: id, shown: toShownDigest(tool, input) };
  });
  const startedBy = first?.startedBy;
  const task = { tenant, task: message.id, agent, conversation: chatId, ...(startedBy !== undefined && { startedBy }) };
  // Without the record no one can tell who started it.
  const open = first === undefined ? [] : asked.map((one) => ({ ...one, ...task }));
  const refused = asked.length === 0 ? undefined : await access.refuseAnswer(who, () => Promise.resolve(open));
  if (refused === undefined) return { counted, startedBy: startedBy ?? (who.name || undefined) };
  for (const one of counted) access.audit(who, { type: 'approve', tenant, ...one, result: 'refused' });
  throw new HttpError(403, refused);
}

/** Answers the questions of an agent's reply with what a page says about its calls. */
export async function answerReply(
  parts: Pick<ChatParts, 'store' | 'access'>,
  who: Principal,
  { chatId, given }: Pick<ChatAnswers, 'chatId' | 'given'>,
): Promise<Continued> {
  const { store } = parts;
  const { tenant } = who;
  const ref = { tenant, id: given.messageId };
  const task = await store.get(ref);
  const asked = task?.conversation === chatId ? [...(await readQuestions(store, ref))] : [];
  const isMeant =
    (answer: PageAnswer) =>
    ([id, { callId, kind }]: (typeof asked)[number]) =>
      'approvalId' in answer ? id === answer.approvalId : callId === answer.toolCallId && kind !== 'approve';
  let isAsked = false;
  for (const answer of given.answers) {
    const [id, question] = asked.findLast(isMeant(answer)) ?? [];
    isAsked ||= id !== undefined;
    // What was answered before, here or elsewhere, changes nothing.
    if (id !== undefined && question?.isAnswered !== true)
      await answerOnce(parts, who, { id, value: toValue(answer, question?.schema) });
  }
  return { ...(isAsked && { ref }), counted: [], isOwn: false };
}

/** Some protocols have only texts. */
function toValue(answer: PageAnswer, schema: JsonSchema | undefined) {
  if ('output' in answer) {
    const output = (answer.output ?? null) as Json;
    return { answer: typeof output === 'string' && schema !== undefined ? parseAnswer(output, schema) : output };
  }
  if ('errorText' in answer) return { error: answer.errorText };
  const { approved, reason } = answer;
  return { decision: approved ? 'yes' : 'no', ...(reason !== undefined && !approved && { why: reason }) } as const;
}

/** Answers a question of a chat. */
export async function answerQuestion(
  parts: Pick<ChatParts, 'store' | 'access'>,
  who: Principal,
  { chatId, approvalId, ...value }: ChatAnswer,
): Promise<AnswerReceipt> {
  const id = findQuestionTask(approvalId);
  const task = id && (await parts.store.get({ tenant: who.tenant, id }));
  if (!task || task.conversation !== chatId) return { result: 'not-found' };
  return answerOnce(parts, who, { id: approvalId, value });
}

/** Answers a question. A user who repeats an answer gets the same receipt. */
function answerOnce(
  { store, access }: Pick<ChatParts, 'store' | 'access'>,
  who: Principal,
  { id, value }: { readonly id: string; readonly value: AnswerBody },
): Promise<AnswerReceipt> {
  const nonce = hash('sha256', JSON.stringify([id, who.name, value]), 'base64url');
  return answerFor(who, { tenant: who.tenant, id, value, nonce }, { store, access, world: systemWorld });
}
