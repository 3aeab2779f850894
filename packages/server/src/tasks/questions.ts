import { z } from '@hono/zod-openapi';
import type { AnswerReceipt } from '@whoa/tasks';
import { defineEndpoint, type Endpoint } from '../http/endpoint.ts';
import { HttpError, refuseCursor } from '../http/http-error.ts';
import { MOMENT, NAME } from '../http/schemas.ts';
import { ANSWER, answerFor } from './answering.ts';
import { listClosedQuestions } from './closed-questions.ts';

const MAX_PAGE = 200;

const QUESTION = z
  .object({
    id: z.string(),
    callId: z.string(),
    kind: z.enum(['approve', 'answer', 'client']),
    askedAt: MOMENT,
    expiresAt: MOMENT.optional(),
    shown: z.string().openapi({ description: 'The digest of what was shown. The question itself is in the journal.' }),
  })
  .openapi('Question');
const QUESTIONS = z
  .object({ questions: z.array(QUESTION), next: z.string().optional() })
  .openapi('Questions', { description: 'Open questions, oldest first.' });
const RECEIPT = z
  .object({ result: z.literal('accepted'), question: z.string(), at: MOMENT })
  .openapi('AnswerReceipt', { description: 'The answer counts. The worker acts on it next.' });

const CLOSED_QUESTION = QUESTION.extend({
  task: z.object({ id: z.string(), agent: z.string(), title: z.string().optional(), startedBy: z.string().optional() }),
  answer: z.object({ value: z.unknown(), by: z.string().optional(), at: MOMENT }).optional(),
  closed: z.object({ why: z.enum(['answered', 'outdated', 'expired', 'withdrawn', 'cancelled', 'ended']), at: MOMENT }),
}).openapi('ClosedQuestion');
const CLOSED_QUESTIONS = z
  .object({
    questions: z.array(CLOSED_QUESTION),
    since: MOMENT.optional().openapi({
      description: 'Only tasks that were created from then on were read. Left out if that is all of them.',
    }),
  })
  .openapi('ClosedQuestions', { description: 'Closed questions, latest first.' });

export const QUESTION_ENDPOINTS: readonly Endpoint[] = [
  defineEndpoint({
    method: 'get',
    path: '/v1/questions',
    right: 'read',
    forOperators: true,
    summary: 'Lists open questions, oldest first.',
    query: z.object({ limit: z.coerce.number().int().min(1).max(MAX_PAGE).optional(), cursor: NAME.optional() }),
    responses: { 200: { description: 'The questions.', schema: QUESTIONS } },
    async handle({ tenant, query: { limit = MAX_PAGE, cursor } }, { store }) {
      const page = store.questions({ tenant, limit, ...(cursor !== undefined && { cursor }) });
      return Response.json(await page.catch(refuseCursor));
    },
  }),
  defineEndpoint({
    method: 'get',
    path: '/v1/questions/closed',
    right: 'read',
    forOperators: true,
    summary: 'Lists the questions that were closed last, with their answers, who gave them, and how they closed.',
    query: z.object({ limit: z.coerce.number().int().min(1).max(MAX_PAGE).default(MAX_PAGE) }),
    responses: { 200: { description: 'The questions.', schema: CLOSED_QUESTIONS } },
    handle: async ({ tenant, query: { limit } }, { store }) =>
      Response.json(await listClosedQuestions(store, { tenant, limit })),
  }),
  defineEndpoint({
    method: 'post',
    path: '/v1/questions/{id}',
    right: 'approve',
    summary: 'Answers a question. The first answer counts.',
    params: z.object({ id: NAME }),
    body: ANSWER,
    responses: {
      202: { description: 'The answer counts.', schema: RECEIPT },
      403: { description: 'You may not answer it: you lack the right, started its task, or are not an approver.' },
      404: { description: 'There is no such question.' },
      409: { description: 'It was answered or closed before; error.why says which.' },
    },
    async handle({ principal, tenant, params: { id }, body }, parts) {
      const receipt = await answerFor(principal, { tenant, id, value: body }, parts);
      if (receipt.result === 'accepted') return Response.json(receipt, { status: 202 });
      throw toRefusal(receipt);
    },
  }),
];

/** Converts the receipt of an answer that does not count to an error. */
export function toRefusal(receipt: Exclude<AnswerReceipt, { result: 'accepted' }>): HttpError {
  if (receipt.result === 'not-found') {
    const message = 'You have no such question: it never existed, or its task is no longer stored';
    return new HttpError(404, { code: 'unknown-question', message });
  }
  const { why, given } = receipt;
  const message = given?.by === undefined ? TOO_LATE[why] : `${TOO_LATE[why]} by ${given.by}`;
  return new HttpError(409, { code: 'too-late', message, why, ...(given && { given }) });
}

const TOO_LATE: Readonly<Record<Extract<AnswerReceipt, { result: 'too-late' }>['why'], string>> = {
  answered: 'The question was already answered',
  expired: 'The question was not answered in time',
  withdrawn: 'The user wrote a new message instead of answering, or the call was stopped',
  outdated: 'What would run has changed, and the question was asked again',
  cancelled: 'The task was cancelled before',
  ended: 'The task has ended',
};
