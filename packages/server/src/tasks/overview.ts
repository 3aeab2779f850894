import { z } from '@hono/zod-openapi';
import { defineEndpoint, type Endpoint } from '../http/endpoint.ts';
import { COUNT, MOMENT, NAME, STATUSES } from '../http/schemas.ts';
import { ALL_TENANTS, addCounts, readAll } from './all-tenants.ts';

const MAX_PAGE = 1_000;

const COUNTS = z
  .object({
    tenant: z.string(),
    statuses: z.object(Object.fromEntries(STATUSES.map((status) => [status, COUNT]))),
    limit: COUNT.openapi({ description: 'A count that equals this limit means that many or more.' }),
  })
  .openapi('Counts');

const WORKERS = z
  .object({
    workers: z.array(
      z.object({
        worker: z.string(),
        holds: COUNT.openapi({ description: 'How many tasks it holds.' }),
        tasks: z.array(z.string()).openapi({ description: 'Ids of tasks it holds, at most 100.' }),
        expiresAt: MOMENT.optional(),
        waitsFor: z
          .array(z.string())
          .openapi({ description: 'The agents it waits for tasks of; empty while it has no free capacity.' }),
      }),
    ),
    more: z.boolean().openapi({ description: 'Whether there are more than the limit.' }),
    now: MOMENT,
  })
  .openapi('Workers');

const ME = z
  .object({
    name: z.string(),
    tenant: z.string(),
    rights: z.array(z.string()),
    agents: z
      .array(z.string())
      .optional()
      .openapi({ description: 'The agents that can be started; any, if left out.' }),
    store: z.string().openapi({ description: 'The kind of store.' }),
  })
  .openapi('Me');

export const OVERVIEW_ENDPOINTS: readonly Endpoint[] = [
  defineEndpoint({
    method: 'get',
    path: '/v1/me',
    right: 'read',
    forOperators: true,
    summary: 'Who sends the request, and what they may do.',
    responses: { 200: { description: 'The sender.', schema: ME } },
    handle: ({ principal: { name, tenant, rights } }, { store, agents }) =>
      Response.json({ name, tenant, rights, ...(agents && { agents }), store: store.name }),
  }),
  defineEndpoint({
    method: 'get',
    path: '/v1/counts',
    right: 'read',
    forOperators: true,
    summary: 'The number of tasks by status. Of all tenants with tenant=*.',
    responses: { 200: { description: 'The counts.', schema: COUNTS } },
    async handle({ tenant }, { store }) {
      const count = (tenant: string) => store.counts({ tenant });
      return Response.json(tenant === ALL_TENANTS ? addCounts(await readAll(store, count)) : await count(tenant));
    },
  }),
  defineEndpoint({
    method: 'get',
    path: '/v1/tenants',
    right: 'operate',
    summary: 'Tenants that have tasks.',
    query: z.object({
      limit: z.coerce.number().int().min(1).max(MAX_PAGE).default(100),
      cursor: NAME.optional().openapi({ description: '`next` of the previous page.' }),
    }),
    responses: {
      200: {
        description: 'A page.',
        schema: z.object({ tenants: z.array(z.string()), next: z.string().optional() }),
      },
    },
    handle: async ({ query: { limit, cursor } }, { store }) =>
      Response.json(await store.tenants({ limit, ...(cursor !== undefined && { cursor }) })),
  }),
  defineEndpoint({
    method: 'get',
    path: '/v1/workers',
    right: 'operate',
    summary: 'Workers that hold tasks or wait for some, of all tenants.',
    query: z.object({ limit: z.coerce.number().int().min(1).max(MAX_PAGE).default(MAX_PAGE) }),
    responses: { 200: { description: 'The workers.', schema: WORKERS } },
    handle: async ({ query: { limit } }, { store }) => Response.json(await store.workers({ limit })),
  }),
];
