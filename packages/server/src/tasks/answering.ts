import { z } from '@hono/zod-openapi';
import type { Json, Policy } from '@whoa/core';
import type { World } from '@whoa/core/embed';
import type { AnswerReceipt, NewTask, Question, TaskRecord, TaskRef, TaskStore } from '@whoa/tasks';
import { findQuestionTask } from '@whoa/tasks/internal';
import type { Access } from '../http/access/access.ts';
import type { AnswerableQuestion } from '../http/access/approvers.ts';
import type { Principal } from '../http/access/principal.ts';
import { invalid } from '../http/endpoint.ts';
import { HttpError } from '../http/http-error.ts';
import { withStoreRetry } from '../http/with-store-retry.ts';
import { isOpen, readOpenQuestions, readQuestions } from './read-questions.ts';

const MAX_WHY_CHARACTERS = 10_000;

/** An answer to a question: a decision about a call, or the result of a call. */
export type AnswerBody = {
  readonly decision?: 'yes' | 'no' | 'always' | 'never' | undefined;
  readonly why?: string | undefined;
  readonly answer?: Json | undefined;
  readonly error?: string | undefined;
};

const text = z.string().min(1).max(MAX_WHY_CHARACTERS).optional();

export const ANSWER: z.ZodType<AnswerBody> = z
  .strictObject({
    decision: z.enum(['yes', 'no', 'always', 'never']).optional().openapi({
      description:
        'For the kind approve. always and never also apply, in this task, to everything that the question lists under always.',
    }),
    why: text.openapi({ description: 'If denied: the reason that the model gets.' }),
    answer: z
      .any()
      .optional()
      .openapi({ description: 'For the kinds answer and client: the result of the call, as its schema says.' }),
    error: text.openapi({ description: 'For the kinds answer and client: why there is no result.' }),
  })
  .refine(({ decision, answer, error }) => [decision, answer, error].filter((one) => one !== undefined).length === 1, {
    message: 'expected one of decision, answer and error',
  })
  .refine(({ decision, why }) => why === undefined || decision !== undefined, { message: 'why needs a decision' });

/** The policies under which a message withdraws questions. */
const WITHDRAWING: ReadonlySet<Policy> = new Set<Policy>(['queue', 'merge', 'steer']);

interface AnsweringContext {
  readonly store: TaskStore;
  readonly access: Access;
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
  if (task !== undefined) await checkAnswer(store, task, { id: ref.id, value });
  const given = { value: value as Json, by: principal.name };
  const send = (unique: string) => store.answer(ref, given, { nonce: unique });
  const receipt = await (nonce === undefined ? withStoreRetry(world, send) : send(nonce));
  audit(receipt.result);
  return receipt;
}

/** Rejects an answer that its question cannot have. The worker checks it again: only it has the schema itself. */
async function checkAnswer(
  store: TaskStore,
  task: TaskRecord,
  { id, value }: Pick<NewAnswerTo, 'id' | 'value'>,
): Promise<void> {
  const question = (await readOpenQuestions(store, task)).find((one) => one.id === id);
  // The store says why it does not count.
  if (question === undefined) return;
  const isApproval = question.kind === 'approve';
  if (isApproval !== (value.decision !== undefined)) {
    const expected = isApproval ? 'a decision' : 'an answer or an error';
    const message = `request: a question of the kind ${question.kind} needs ${expected}`;
    throw new HttpError(400, { code: 'invalid', message });
  }
  const schema = value.answer === undefined ? undefined : toSchema(question.schema);
  const checked = schema?.safeParse(value.answer);
  if (checked?.success === false) {
    const issues = checked.error.issues.map((issue) => ({ ...issue, path: ['answer', ...issue.path] }));
    throw invalid(new z.ZodError(issues));
  }
}

/** Returns `undefined` for a schema that cannot be read here. */
function toSchema(schema: object | undefined): z.ZodType | undefined {
  try {
    return schema && z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0]);
  } catch {
    return undefined;
  }
}

/**
 * Returns whether a message of a principal must leave the open questions of a conversation alone, because they may not
 * answer all of them. If that depends on questions and none is open, it must: one may be asked before it is stored.
 */
export async function keepsQuestions(
  principal: Principal,
  { tenant, conversation, policy }: Pick<NewTask, 'tenant' | 'conversation'> & { readonly policy: Policy | undefined },
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
