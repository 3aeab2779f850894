import { z } from '@hono/zod-openapi';
import type { Json } from '@whoa/core';
import { type CreateReceipt, type ListFilter, listPoisonTasks, StoreFullError, type TaskSummary } from '@whoa/tasks';
import { defineEndpoint, type Endpoint } from '../http/endpoint.ts';
import { HttpError, unknownTask } from '../http/http-error.ts';
import { NAME, STATUS, TASK, TASK_PARAMS } from '../http/schemas.ts';
import { findTrace } from '../http/traceparent.ts';
import { withStoreRetry } from '../http/with-store-retry.ts';
import { ALL_TENANTS, mergePages, readAll } from './all-tenants.ts';
import { keepsQuestions } from './answering.ts';

const MAX_LIST = 1_000;
const CURSOR = z
  .string()
  .max(300)
  .regex(/^\d+(\.\d+)?\/[^\0]+$/)
  .refine((cursor) => cursor.isWellFormed());

/** Any JSON. Only the outer type is checked, because it may be large. */
const JSON_VALUE = z.union([
  z.string(),
  z.number(),
  z.boolean(),
  z.null(),
  z.array(z.unknown()),
  z.record(z.string(), z.unknown()),
]);

const MOMENT = z.number().int().min(0).max(8_640_000_000_000_000);

const NEW_TASK = z
  .strictObject({
    agent: NAME.refine((agent) => !agent.startsWith('*'), "names that start with '*' are reserved for the store"),
    input: JSON_VALUE.openapi({
      description: "For an agent: a text, its parts, or a user's message. For other work: any JSON.",
    }),
    key: NAME.optional().openapi({
      description:
        'Your own name for the task: a second request with the same key creates nothing, and must have the same input.',
    }),
    priority: z.number().int().min(-100).max(100).optional(),
    notBefore: MOMENT.optional().openapi({
      description: 'No worker takes it before this time, in milliseconds since 1970.',
    }),
    deadline: MOMENT.optional().openapi({
      description:
        'If it has not ended by this time, it is cancelled; it never starts later. In milliseconds since 1970.',
    }),
    conversation: NAME.optional(),
    policy: z
      .enum(['replace', 'queue', 'merge', 'steer', 'reject'])
      .optional()
      .openapi({ description: 'What it does to the active task of its conversation. Defaults to replace.' }),
  })
  .refine(({ notBefore = -1, deadline = Infinity }) => deadline > notBefore, {
    path: ['deadline'],
    message: 'must come after notBefore; the task could never start',
  });

const CREATED = z
  .object({
    result: z.enum(['created', 'duplicate']),
    task: TASK,
    superseded: z.array(z.string()).optional(),
    steered: z.string().optional(),
  })
  .openapi('Created');

export const TASK_ENDPOINTS: readonly Endpoint[] = [
  defineEndpoint({
    method: 'post',
    path: '/v1/tasks',
    right: 'start',
    summary: 'Creates a task; a worker takes it when its turn comes.',
    body: NEW_TASK,
    responses: {
      201: { description: 'The task was created.', schema: CREATED },
      200: { description: 'A task with this key already exists.', schema: CREATED },
      409: {
        description:
          'The policy is reject and the conversation has an active task, or a task with this key has another input.',
      },
    },
    async handle({ principal, tenant, request, body: { policy, input, ...task } }, { store, access, world, agents }) {
      if (agents !== undefined && !agents.includes(task.agent))
        throw new HttpError(400, { code: 'unknown-agent', message: `agent: expected one of ${agents.join(', ')}` });
      const { conversation } = task;
      const wanted = {
        ...task,
        tenant,
        input: input as Json,
        ...findTrace(request.headers.get('traceparent')),
        startedBy: principal.name || undefined,
        keepsQuestions: await keepsQuestions(principal, { tenant, conversation, policy }, { store, access }),
      };
      const receipt = await withStoreRetry(world, (nonce) =>
        store.create(wanted, { nonce, ...(policy && { policy }) }),
      );
      if (receipt.result !== 'created' && !('isSameInput' in receipt && receipt.isSameInput)) throw notCreated(receipt);
      return Response.json(receipt, { status: receipt.result === 'created' ? 201 : 200 });
    },
  }),
  defineEndpoint({
    method: 'get',
    path: '/v1/tasks',
    right: 'read',
    forOperators: true,
    summary: 'Lists tasks, newest first, without their inputs. tenant=* lists those of all tenants.',
    query: z.object({
      status: STATUS.optional(),
      agent: NAME.optional().openapi({
        description: 'A page then holds only those of its tasks that have this agent.',
      }),
      conversation: NAME.optional(),
      poison: z.stringbool().default(false).openapi({
        description:
          'Only failed tasks whose workers crashed again and again. A page may then be empty and have a next.',
      }),
      brief: z.stringbool().default(false).openapi({
        description: 'Leaves out answers, results and stop reports, which may be long.',
      }),
      limit: z.coerce.number().int().min(1).max(MAX_LIST).default(100),
      cursor: CURSOR.optional().openapi({ description: '`next` of the previous page.' }),
    }),
    responses: {
      200: { description: 'A page.', schema: z.object({ tasks: z.array(TASK), next: z.string().optional() }) },
    },
    async handle({ tenant, query: { agent, brief, poison, ...filter } }, { store }) {
      const list = (tenant: string) => {
        const wanted = { tenant, ...(filter as Omit<ListFilter, 'tenant'>) };
        return poison ? listPoisonTasks(store, wanted) : store.list(wanted);
      };
      const page = tenant === ALL_TENANTS ? mergePages(await readAll(store, list), filter.limit) : await list(tenant);
      // Stores have no index by agent.
      const tasks = page.tasks.filter((task) => agent === undefined || task.agent === agent);
      return Response.json({ ...page, tasks: brief ? tasks.map(toBrief) : tasks });
    },
  }),
  defineEndpoint({
    method: 'get',
    path: '/v1/tasks/{id}',
    right: 'read',
    forOperators: true,
    summary: 'One task, with its inputs and, when it has ended, its outcome.',
    params: TASK_PARAMS,
    responses: { 200: { description: 'The task.', schema: TASK } },
    async handle({ tenant, params: { id } }, { store }) {
      const task = await store.get({ tenant, id });
      if (task === undefined) throw unknownTask();
      return Response.json(task);
    },
  }),
];

function notCreated(receipt: Exclude<CreateReceipt, { result: 'created' }>): HttpError {
  if (receipt.result === 'duplicate') {
    const message = 'A task with this key exists, and its input is another; use a new key, or read that task';
    return new HttpError(409, { code: 'other-input', message, ...receipt });
  }
  if (receipt.result === 'rejected') {
    const message = 'This conversation has an active task; cancel it, wait for it, or use another policy';
    return new HttpError(409, { code: 'rejected', message });
  }
  const { what, limit } = receipt;
  return new HttpError(429, { code: 'full', message: new StoreFullError(receipt).message, what, limit });
}

/** A task as a list needs it: polled every second, answers would be most of what is sent. */
function toBrief({ outcome, ...task }: TaskSummary): TaskSummary {
  if (outcome === undefined) return task;
  const { answer: _answer, result: _result, stopReport: _stop, ...rest } = outcome;
  return { ...task, outcome: rest };
}
