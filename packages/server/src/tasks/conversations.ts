import { z } from '@hono/zod-openapi';
import { defineEndpoint, type Endpoint } from '../http/endpoint.ts';
import { HttpError } from '../http/http-error.ts';
import { TASK_PARAMS } from '../http/schemas.ts';

const MAX_MESSAGES = 1_000;

const CONVERSATION = z
  .object({
    tenant: z.string(),
    conversation: z.string(),
    current: z.string().optional().openapi({ description: 'The task that is running or runs next.' }),
    waiting: z.array(z.string()),
    debouncing: z.string().optional(),
    history: z.array(z.unknown()).openapi({ description: 'The last messages.' }),
    historyLength: z.number().int().openapi({ description: 'The total number of messages.' }),
    changedAt: z.number(),
  })
  .openapi('Conversation');

export const CONVERSATION_ENDPOINT: Endpoint = defineEndpoint({
  method: 'get',
  path: '/v1/conversations/{id}',
  right: 'read',
  forOperators: true,
  summary: 'The state of a conversation, and the end of its history.',
  params: TASK_PARAMS,
  query: z.object({ messages: z.coerce.number().int().min(0).max(MAX_MESSAGES).default(100) }),
  responses: { 200: { description: 'The conversation.', schema: CONVERSATION } },
  async handle({ tenant, params: { id: conversation }, query: { messages } }, { store }) {
    const record = await store.conversation({ tenant, conversation });
    if (record === undefined) {
      const message = 'You have no such conversation: it never existed, or is no longer stored';
      throw new HttpError(404, { code: 'unknown-conversation', message });
    }
    const { history } = record;
    const last = history.slice(Math.max(0, history.length - messages));
    return Response.json({ ...record, history: last, historyLength: history.length });
  },
});
