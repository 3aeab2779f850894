import { hash } from 'node:crypto';
import type { Json, Policy } from '@whoa/core';
import type { World } from '@whoa/core/embed';
import type { AnswerReceipt, Question, TaskRecord, TaskRef, TaskStore } from '@whoa/tasks';
import { findQuestionTask } from '@whoa/tasks/internal';
import type { Access } from '../http/access/access.ts';
import type { AnswerableQuestion } from '../http/access/approvers.ts';
import type { Principal } from '../http/access/principal.ts';
import { HttpError } from '../http/http-error.ts';
import { withStoreRetry } from '../http/with-store-retry.ts';
import { type AnswerBody, checkAnswer } from './answer.ts';
import { isOpen, readQuestions } from './read-questions.ts';

/** The policies under which a message withdraws questions. */
const WITHDRAWING: ReadonlySet<Policy> = new Set<Policy>(['queue', 'merge', 'steer']);

interface AnsweringContext {
  readonly store: TaskStore;
  readonly access: Access;
}

interface MessageTarget {
  readonly tenant: string;
  readonly conversation: string | undefined;
  readonly policy: Policy | undefined;
}

interface NewAnswerTo {
  readonly tenant: string;
  /** The question. */
  readonly id: string;
  readonly value: AnswerBody;
  /** Left out: the answer is repeated if its response is lost, and counts once. */
  readonly nonce?: string;
}

/**
 * Answers a question for a principal, and records it in the audit. A question that is not open is not checked: nothing
 * can be answered there.
 *
 * @throws HttpError, 403, if they may not; 400, if the question cannot have this answer.
 */
export async function answerFor(
  principal: Principal,
  { value, nonce, ...ref }: NewAnswerTo,
  { store, access, world }: AnsweringContext & { readonly world: World },
): Promise<AnswerReceipt> {
  const id = findQuestionTask(ref.id);
  const task = id === undefined ? undefined : await store.get({ tenant: ref.tenant, id });
  const question = task?.questions?.find((one) => one.id === ref.id);
  const about = question && { callId: question.callId, shown: question.shown };
  const audited = { type: 'approve', tenant: ref.tenant, target: id ?? ref.id, question: ref.id, ...about } as const;
  const audit = (result: string): void => access.audit(principal, { ...audited, result });
  const isAsking = question !== undefined && isOpen(question);
  const refused = isAsking ? await access.refuseAnswer(principal, () => describe(store, task!, [question])) : undefined;
  if (refused !== undefined) {
    audit('refused');
    throw new HttpError(403, refused);
  }
  await checkAnswer(store, ref, value);
  const given = { value: value as Json, by: principal.name };
  const send = (unique: string) => store.answer(ref, given, { nonce: unique });
  const receipt = await (nonce === undefined ? withStoreRetry(world, send) : send(nonce));
  audit(receipt.result);
  return receipt;
}

/**
 * Returns whether a message of a principal must leave the open questions of a conversation alone, because they may not
 * answer all of them. If that depends on questions and none is open, it must: one may be asked before it is stored.
 */
export async function keepsQuestions(
  principal: Principal,
  { tenant, conversation, policy }: MessageTarget,
  { store, access }: AnsweringContext,
): Promise<boolean> {
  if (conversation === undefined || policy === undefined || !WITHDRAWING.has(policy)) return false;
  const refused = await access.refuseAnswer(principal, async () => {
    const id = (await store.conversation({ tenant, conversation }))?.current;
    const task = id === undefined ? undefined : await store.get({ tenant, id });
    return task === undefined ? [] : describe(store, task, (task.questions ?? []).filter(isOpen));
  });
  return refused !== undefined;
}

/** Returns why a message of a principal must not withdraw the open questions of a task; `undefined` if it may. */
export async function refuseMessage(
  principal: Principal,
  ref: TaskRef,
  { store, access }: AnsweringContext,
): ReturnType<Access['refuseAnswer']> {
  const task = await store.get(ref);
  const open = (task?.questions ?? []).filter(isOpen);
  return open.length === 0 ? undefined : access.refuseAnswer(principal, () => describe(store, task!, open));
}

/** Returns the digest of what a page showed about a call of the application's own loop. */
export function toShownDigest(tool: string, input: unknown): string {
  return hash('sha256', JSON.stringify([tool, input ?? null]), 'base64url');
}

/** Returns questions with their task and all that was shown. */
async function describe(
  store: TaskStore,
  { id: task, tenant, agent, conversation, startedBy }: TaskRecord,
  questions: readonly Question[],
): Promise<readonly AnswerableQuestion[]> {
  const asked = await readQuestions(store, { tenant, id: task });
  const more = { ...(conversation !== undefined && { conversation }), ...(startedBy !== undefined && { startedBy }) };
  const asking = { tenant, task, agent, ...more };
  return questions.map(({ id, callId, kind, askedAt }) => {
    const about = asked.get(id)?.question;
    return { id, callId, kind, askedAt, ...asking, ...(about && { tool: about.tool, about }) };
  });
}
