import { z } from '@hono/zod-openapi';

/** Names are indexed, and Postgres accepts only well-formed text. */
export const NAME: z.ZodType<string> = z
  .string()
  .min(1)
  .max(200)
  .refine((name) => name.isWellFormed() && !name.includes('\0'), 'a NUL or half a character cannot be kept');

export const STATUSES = ['init', 'running', 'cancelling', 'success', 'failed', 'cancelled'] as const;
export const STATUS: z.ZodType<(typeof STATUSES)[number]> = z.enum(STATUSES);

export const MOMENT: z.ZodType<number> = z
  .number()
  .openapi({ description: 'Milliseconds since 1970, by the clock of the store.' });

export const REASON: z.ZodType = z.object({
  kind: z.string(),
  message: z.string().optional(),
  by: z.string().optional(),
  via: z.string().optional(),
  traceparent: z.string().optional(),
  at: MOMENT,
});

export const COUNT: z.ZodNumber = z.number().int();
const ACTIVITY = z
  .object({
    turns: COUNT,
    calls: COUNT,
    usage: z
      .object({
        inputTokens: z.number(),
        cachedInputTokens: z.number().optional(),
        outputTokens: z.number(),
        isComplete: z.boolean(),
      })
      .optional(),
    spending: z
      .object({ spent: COUNT, estimated: COUNT, reserved: COUNT })
      .optional()
      .openapi({ description: 'In millionths of a US dollar, if the agent has a limit in money.' }),
    providerWait: z
      .object({ error: z.string(), since: MOMENT, attempts: COUNT })
      .optional()
      .openapi({ description: 'Why it waits for the provider of its model, until `stageAt`.' }),
  })
  .openapi({ description: 'What an agent has done so far.' });

/** A task as it is shown. It may have more fields. */
export const TASK: z.ZodType = z
  .looseObject({
    id: z.string(),
    tenant: z.string(),
    agent: z.string(),
    conversation: z.string().optional(),
    title: z.string().max(120).optional().openapi({ description: 'What was asked, in one line.' }),
    key: z.string().optional(),
    priority: z.number().int(),
    status: STATUS,
    notBefore: MOMENT.optional(),
    deadline: MOMENT.optional(),
    traceparent: z.string().optional().openapi({ description: 'The W3C trace context of what created it.' }),
    startedBy: z.string().optional().openapi({ description: 'Who started it.' }),
    createdAt: MOMENT,
    startedAt: MOMENT.optional(),
    endedAt: MOMENT.optional(),
    stop: z.looseObject({ level: z.string(), reason: REASON, killAt: MOMENT, undo: z.boolean() }).optional(),
    position: z.number().int().openapi({ description: 'The position of the last journal entry.' }),
    activity: ACTIVITY.optional(),
    waiting: COUNT.optional().openapi({ description: 'How many questions wait for an answer.' }),
    inputs: z.array(z.unknown()).optional().openapi({ description: 'Not in lists.' }),
    outcome: z.looseObject({ status: STATUS, answer: z.string().optional() }).optional(),
  })
  .openapi('Task');

export const TASK_PARAMS: z.ZodObject<{ id: typeof NAME }> = z.object({ id: NAME });
