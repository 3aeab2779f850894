import { z } from '@hono/zod-openapi';
import {
  eraseRecords,
  haltTasks,
  type PauseTarget,
  type RequeueReceipt,
  readFleetLoad,
  requeueTask,
} from '@whoa/tasks';
import { may, refuseRight } from '../http/access/access.ts';
import { defineEndpoint, type Endpoint } from '../http/endpoint.ts';
import { HttpError, refuseCursor, unknownTask } from '../http/http-error.ts';
import { COUNT, MOMENT, NAME, TASK, TASK_PARAMS } from '../http/schemas.ts';
import { REASON_TEXT } from './cancel.ts';

const MAX_QUEUES = 1_000;
/** The longest that a request waits for running tasks: proxies give up on longer ones. */
const MAX_WAIT_MS = 30_000;

const TARGET = z.union([
  z.strictObject({ agent: NAME }),
  z.strictObject({ tenant: NAME }),
  z.strictObject({ all: z.literal(true) }),
]);

const FLEET = z
  .object({
    agents: z.array(
      z.object({
        agent: z.string(),
        ready: COUNT,
        running: COUNT,
        oldestWaitMs: z.number().openapi({ description: 'How long the oldest ready task has waited.' }),
        waiting: COUNT.openapi({ description: 'How many workers wait for its tasks now.' }),
        isPaused: z.boolean(),
        isUnserved: z.boolean().openapi({ description: 'Tasks wait, and no worker waits for them or runs any.' }),
      }),
    ),
    paused: z.array(TARGET),
    unsettled: COUNT.openapi({ description: 'Cancelled tasks that wait for a worker to settle them.' }),
    more: z.boolean(),
  })
  .openapi('Fleet');

const QUEUES = z
  .object({
    queues: z.array(z.object({ agent: z.string(), tenant: z.string(), ready: COUNT, oldestReadyAt: MOMENT })),
    running: z.record(z.string(), COUNT).openapi({ description: 'Running tasks by agent. First page only.' }),
    waiting: z.record(z.string(), COUNT).openapi({ description: 'Workers that wait, by agent.' }),
    paused: z.array(TARGET),
    now: MOMENT,
    next: z.string().optional(),
  })
  .openapi('Queues');

const ERASED = z
  .object({
    tenant: z.string(),
    conversation: z.string().optional(),
    cancelled: COUNT,
    tasks: COUNT,
    conversations: COUNT,
    live: z.array(z.string()).openapi({ description: 'Tasks that were still running at the end, at most 100.' }),
    isComplete: z.boolean().openapi({ description: 'Nothing is left. If not, send the request again.' }),
    startedAt: MOMENT,
    endedAt: MOMENT,
  })
  .openapi('Erased');

const HALTED = z
  .object({
    target: TARGET,
    isQuiet: z.boolean().openapi({ description: 'Nothing of the target runs. If not, send the request again.' }),
    stopped: COUNT.openapi({ description: 'Tasks that this request stopped.' }),
    left: COUNT.openapi({ description: 'Tasks of the target that still run.' }),
    running: z.array(
      z.object({
        id: z.string(),
        tenant: z.string(),
        agent: z.string(),
        status: z.string(),
        until: MOMENT.optional().openapi({
          description: 'When it will have ended at the latest, if its worker lives.',
        }),
      }),
    ),
    waiting: COUNT.openapi({ description: 'Tasks that wait for an answer, and stay.' }),
    others: COUNT.openapi({ description: 'Tasks outside the target that run.' }),
  })
  .openapi('Halted');

export const OPERATE_ENDPOINTS: readonly Endpoint[] = [
  defineEndpoint({
    method: 'get',
    path: '/v1/fleet',
    right: 'operate',
    summary: 'Ready and running tasks by agent, over all tenants, and agents that no worker serves.',
    responses: { 200: { description: 'The fleet.', schema: FLEET } },
    handle: async (_asked, { store }) => Response.json(await readFleetLoad(store)),
  }),
  defineEndpoint({
    method: 'get',
    path: '/v1/queues',
    right: 'operate',
    summary: 'Queues with ready tasks, by agent and tenant, and what is paused.',
    query: z.object({
      limit: z.coerce.number().int().min(1).max(MAX_QUEUES).default(100),
      cursor: z
        .string()
        .max(2_048)
        .refine((text) => text.isWellFormed())
        .optional()
        .openapi({ description: '`next` of the previous page.' }),
    }),
    responses: { 200: { description: 'A page.', schema: QUEUES } },
    async handle({ query: { limit, cursor } }, { store }) {
      const page = store.queues({ limit, ...(cursor !== undefined && { cursor }) });
      return Response.json(await page.catch(refuseCursor));
    },
  }),
  defineEndpoint({
    method: 'post',
    path: '/v1/pause',
    right: 'operate',
    summary: 'Pauses or resumes delivery of an agent’s, a tenant’s or all tasks. Running tasks continue.',
    body: z.strictObject({ target: TARGET, paused: z.boolean() }),
    responses: { 200: { description: 'Done.', schema: z.object({ target: TARGET, paused: z.boolean() }) } },
    async handle({ principal, tenant, body: { target, paused } }, { store, access }) {
      await store.pause(target, paused);
      const named = describeTarget(target);
      const answer = paused ? 'paused' : 'resumed';
      access.audit(principal, { type: 'pause', tenant, target: named, result: answer });
      return Response.json({ target, paused });
    },
  }),
  defineEndpoint({
    method: 'post',
    path: '/v1/halt',
    right: 'halt',
    summary: 'Pauses delivery of an agent’s, a tenant’s or all tasks, stops them, and waits until none runs.',
    body: z.strictObject({
      target: TARGET,
      mode: z.enum(['graceful', 'now', 'kill']).default('now'),
      reason: REASON_TEXT,
      parked: z.boolean().default(false).openapi({ description: 'Also stops tasks that only wait for an answer.' }),
      waitMs: z.number().int().min(0).max(MAX_WAIT_MS).default(MAX_WAIT_MS),
    }),
    responses: { 200: { description: 'A receipt. If it is not quiet, send the request again.', schema: HALTED } },
    async handle(
      { principal, tenant, body: { target, reason: message, ...options }, request },
      { store, access, world },
    ) {
      // Who may see one tenant only must not stop others, nor their own for everyone.
      if (!may(principal, 'operate')) return refuseRight('operate');
      const reason = { kind: 'user', by: principal.name, via: 'halt', ...(message && { message }) };
      // The halt is on record even if its sender leaves before it is quiet.
      access.audit(principal, { type: 'halt', tenant, target: describeTarget(target), result: 'halted' });
      return Response.json(await haltTasks(store, target, { ...options, reason, signal: request.signal, world }));
    },
  }),
  defineEndpoint({
    method: 'post',
    path: '/v1/tasks/{id}/requeue',
    right: 'start',
    forOperators: true,
    summary:
      'Creates a new task with the input of a failed or cancelled one. A repeated request creates no second task.',
    params: TASK_PARAMS,
    body: z.strictObject({}),
    responses: {
      201: {
        description: 'The new task.',
        schema: z.object({ result: z.enum(['requeued', 'unchanged']), task: TASK }),
      },
      200: { description: 'It was requeued before; this is the task that was created then.' },
      409: { description: 'It has not failed, or its input cannot be sent again; the message says which.' },
    },
    async handle({ principal, tenant, params: { id } }, { store, access }) {
      const receipt = await requeueTask(store, { tenant, id });
      access.audit(principal, { type: 'requeue', tenant, target: id, result: receipt.result });
      if (!('task' in receipt)) throw notRequeued(receipt);
      return Response.json(receipt, { status: receipt.result === 'requeued' ? 201 : 200 });
    },
  }),
  defineEndpoint({
    method: 'post',
    path: '/v1/erase',
    right: 'operate',
    summary: 'Deletes all records of a tenant or of one conversation: tasks, journals and histories.',
    body: z.strictObject({
      tenant: NAME,
      conversation: NAME.optional(),
      waitMs: z.number().int().min(0).max(MAX_WAIT_MS).default(MAX_WAIT_MS).openapi({
        description: 'How long to wait for running tasks, which are cancelled.',
      }),
    }),
    responses: { 200: { description: 'A receipt. If it is not complete, send the request again.', schema: ERASED } },
    async handle({ principal, body: { waitMs, ...target }, request: { signal } }, { store, access, world }) {
      const options = { waitMs, signal, by: principal.name, world };
      const receipt = await eraseRecords(store, target as { tenant: string }, options);
      const answer = receipt.isComplete ? 'erased' : 'incomplete';
      const named = target.conversation ?? '*';
      access.audit(principal, { type: 'erase', tenant: target.tenant, target: named, result: answer });
      return Response.json(receipt);
    },
  }),
];

function describeTarget(target: PauseTarget): string {
  if ('all' in target) return 'all';
  return 'agent' in target ? `agent ${target.agent}` : `tenant ${target.tenant}`;
}

function notRequeued(receipt: Exclude<RequeueReceipt, { task: unknown }>): HttpError {
  if (receipt.result === 'not-found') return unknownTask();
  if (receipt.result === 'full')
    return new HttpError(429, { code: 'full', message: 'Too many tasks are waiting; try again later' });
  if (receipt.result === 'merged-inputs') {
    const message = 'Several messages were merged into this task; send them again yourself';
    return new HttpError(409, { code: 'merged-inputs', message });
  }
  const { status } = receipt;
  const message = `Only failed and cancelled tasks are requeued; it is ${status}`;
  return new HttpError(409, { code: 'not-failed', message, status });
}
