import { z } from '@hono/zod-openapi';
import type { CancelReasonInit } from '@whoa/core';
import { type ConversationRef, cancelTasks, type StoreCancelReceipt, type TaskRef } from '@whoa/tasks';
import type { Principal } from '../http/access/principal.ts';
import { type ApiParts, defineEndpoint, type Endpoint } from '../http/endpoint.ts';
import { HttpError, unknownTask } from '../http/http-error.ts';
import { MOMENT, NAME, REASON, STATUS, TASK_PARAMS } from '../http/schemas.ts';
import { findTrace } from '../http/traceparent.ts';
import { withStoreRetry } from '../http/with-store-retry.ts';

const MAX_BULK = 1_000;
const MAX_REASON_CHARACTERS = 1_000;

export const REASON_TEXT: z.ZodType<string | undefined> = z
  .string()
  .max(MAX_REASON_CHARACTERS)
  .optional()
  .openapi({ description: 'The reason, as text.' });

const CANCEL_FIELDS = {
  reason: REASON_TEXT,
  mode: z.enum(['graceful', 'now', 'kill']).default('graceful').openapi({
    description: 'graceful: running calls may finish. now: they are interrupted. kill: they are not waited for.',
  }),
  undo: z.boolean().default(false).openapi({ description: 'Also undoes completed calls that can be undone.' }),
};
const CANCEL = z.strictObject(CANCEL_FIELDS);

const CANCEL_RECEIPT = z
  .object({
    result: z.enum(['accepted', 'escalated', 'unchanged']),
    status: STATUS,
    level: z.enum(['drain', 'abort', 'kill']),
    reason: REASON.openapi({ description: 'The first reason; later ones do not replace it.' }),
    killAt: MOMENT,
  })
  .openapi('CancelReceipt');

const RESPONSES = {
  202: { description: 'The stop was accepted, or raised to a harder mode.', schema: CANCEL_RECEIPT },
  200: { description: 'It was already being stopped, at least as hard.', schema: CANCEL_RECEIPT },
  409: { description: 'It had already ended; error.status says how.' },
};

const FILTER = z
  .strictObject({
    status: z.enum(['init', 'running', 'cancelling']).optional(),
    agent: NAME.optional(),
    conversation: NAME.optional(),
    all: z.literal(true).optional().openapi({ description: 'Every task of the tenant that has not ended.' }),
  })
  .refine((filter) => Object.values(filter).some((value) => value !== undefined), 'name what to cancel, or all: true');

const CURSOR = z
  .string()
  .max(300)
  .regex(/^(init|running|cancelling):(\d+(\.\d+)?\/[^\0]+)?$/)
  .refine((cursor) => cursor.isWellFormed());

const MANY = z.strictObject({
  ...CANCEL_FIELDS,
  filter: FILTER,
  dryRun: z.boolean().default(false).openapi({ description: 'Only reports which tasks would be cancelled.' }),
  limit: z.number().int().min(1).max(MAX_BULK).default(100),
  cursor: CURSOR.optional().openapi({ description: '`next` of the previous response.' }),
});

const COUNTS = z
  .object({
    dryRun: z.boolean(),
    tasks: z.array(z.object({ id: z.string(), status: STATUS, result: z.string() })),
    next: z.string().optional(),
  })
  .openapi('CancelledMany', {
    description: 'If there is a `next`, repeat the request with it as cursor. A dry run reports would-cancel.',
  });

export const CANCEL_ENDPOINTS: readonly Endpoint[] = [
  defineEndpoint({
    method: 'post',
    path: '/v1/tasks/{id}/cancel',
    right: 'cancel',
    forOperators: true,
    summary: 'Stops a task, wherever it runs. Once accepted, the task always ends as cancelled.',
    params: TASK_PARAMS,
    body: CANCEL,
    responses: RESPONSES,
    handle: async ({ tenant, params: { id }, ...asked }, parts) =>
      responseFor(await cancel({ tenant, id }, asked, parts), unknownTask()),
  }),
  defineEndpoint({
    method: 'post',
    path: '/v1/conversations/{id}/cancel',
    right: 'cancel',
    forOperators: true,
    summary: 'Stops the current task of a conversation and all tasks that wait in it.',
    params: TASK_PARAMS,
    body: CANCEL,
    responses: RESPONSES,
    handle: async ({ tenant, params: { id: conversation }, ...asked }, parts) =>
      responseFor(
        await cancel({ tenant, conversation }, asked, parts),
        new HttpError(404, { code: 'nothing-lives', message: 'This conversation has no task to stop' }),
      ),
  }),
  defineEndpoint({
    method: 'post',
    path: '/v1/tasks/cancel',
    right: 'cancel',
    forOperators: true,
    summary: 'Stops every matching task that has not ended, in batches.',
    body: MANY,
    responses: { 200: { description: 'The result for each task.', schema: COUNTS } },
    async handle({ principal, tenant, body, request: sent }, { store, access, world }) {
      const { filter, dryRun, limit, cursor, mode, undo } = body;
      const { all: _all, ...wanted } = filter;
      const reason = toReason(principal, body.reason, sent);
      const request = { ...wanted, tenant, dryRun, limit, cursor, mode, undo, reason };
      const { tasks, next } = await withStoreRetry(world, () => cancelTasks(store, request));
      if (!dryRun)
        for (const { id, result } of tasks) access.audit(principal, { type: 'cancel', tenant, target: id, result });
      return Response.json({ dryRun, tasks, ...(next !== undefined && { next }) });
    },
  }),
];

async function cancel(
  target: TaskRef | ConversationRef,
  {
    principal,
    body,
    request,
  }: { readonly principal: Principal; readonly body: z.infer<typeof CANCEL>; readonly request: Request },
  { store, access, world }: ApiParts,
): Promise<StoreCancelReceipt> {
  const { mode, undo } = body;
  const reason = toReason(principal, body.reason, request);
  const receipt = await withStoreRetry(world, () => store.cancel(target, reason, { mode, undo }));
  const named = 'id' in target ? target.id : target.conversation;
  access.audit(principal, { type: 'cancel', tenant: target.tenant, target: named, result: receipt.result });
  return receipt;
}

/** Takes the name from the principal, never from the request. */
export function toReason({ name }: Principal, message: string | undefined, { headers }: Request): CancelReasonInit {
  const trace = findTrace(headers.get('traceparent'));
  return { kind: 'user', by: name, via: 'http', ...(message !== undefined && { message }), ...trace };
}

function responseFor(receipt: StoreCancelReceipt, unknown: HttpError): Response {
  if (receipt.result === 'not-found') throw unknown;
  if (receipt.result === 'too-late') {
    const { status } = receipt;
    throw new HttpError(409, { code: 'too-late', message: `It had already ended: ${status}`, status });
  }
  return Response.json(receipt, { status: receipt.result === 'unchanged' ? 200 : 202 });
}
