// The model and its tools. The customer comes from the session, never from the model.
import { openai } from '@ai-sdk/openai';
import { type InferUITools, tool, type UIDataTypes, type UIMessage } from 'ai';
import { z } from 'zod';
import { findOrders, refundOrder } from './orders';

const contextSchema = z.object({ user: z.string() });

export const tools = {
  find_orders: tool({
    description: 'Finds orders of the customer by a word in their item.',
    inputSchema: z.object({ item: z.string() }),
    contextSchema,
    execute: ({ item }, { context, abortSignal }) => findOrders(context.user, item, abortSignal),
  }),
  refund: tool({
    description: 'Refunds an order. The customer is asked first.',
    inputSchema: z.object({ order: z.number() }),
    contextSchema,
    execute: ({ order }, { context }) => refundOrder(context.user, order),
  }),
  // It has no `execute`: the page runs it.
  time_zone: tool({
    description: 'Returns the time zone of the customer.',
    inputSchema: z.object({}),
    outputSchema: z.string(),
  }),
};

export type ShopMessage = UIMessage<unknown, UIDataTypes, InferUITools<typeof tools>>;

/** The options of `streamText` for a user. */
export function assistantFor(user: string) {
  return {
    // Your provider: OPENAI_API_KEY, and OPENAI_BASE_URL for others with the same protocol.
    model: openai.chat(process.env['MODEL'] ?? 'gpt-5-mini'),
    instructions: `You help ${user} with orders of a shop. Use your tools; do not ask before you call them.`,
    tools,
    toolApproval: { refund: 'user-approval' } as const,
    toolsContext: { find_orders: { user }, refund: { user } },
  };
}
