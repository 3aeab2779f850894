import { z } from '@hono/zod-openapi';
import type { Json } from '@whoa/core';
import type { TaskStore } from '@whoa/tasks';
import { findQuestionTask } from '@whoa/tasks/internal';
import { invalid } from '../http/endpoint.ts';
import { HttpError } from '../http/http-error.ts';
import { readOpenQuestions } from './read-questions.ts';

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

/** Rejects an answer that its question cannot have. The worker checks it again: only it has the schema itself. */
export async function checkAnswer(
  store: TaskStore,
  { tenant, id }: { readonly tenant: string; readonly id: string },
  value: AnswerBody,
): Promise<void> {
  const owner = findQuestionTask(id);
  const task = owner === undefined ? undefined : await store.get({ tenant, id: owner });
  const question = task && (await readOpenQuestions(store, task)).find((one) => one.id === id);
  // The store says why it does not count.
  if (question === undefined) return;
  const isApproval = question.kind === 'approve';
  if (isApproval !== (value.decision !== undefined)) {
    const expected = isApproval ? 'a decision' : 'an answer or an error';
    throw new HttpError(400, {
      code: 'invalid',
      message: `request: a question of the kind ${question.kind} needs ${expected}`,
    });
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
