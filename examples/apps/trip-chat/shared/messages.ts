// What messages carry besides text, for the server and the page.
import type { InferUITools, UIMessage } from 'ai';
import { z } from 'zod';
import type { createTools } from './assistant.ts';

/** Of replies: what a user sends has none. */
export const metadataSchema = z.object({ model: z.string().optional(), tokens: z.number().optional() }).optional();

export const dataSchemas = {
  /** Shown while it is looked up, and updated in place. */
  weather: z.object({ city: z.string(), degrees: z.number().optional() }),
  /** Where the traveller is: the page adds it to a message. */
  place: z.object({ city: z.string() }),
  /** Shown and forgotten. */
  notice: z.object({ text: z.string() }),
};

type Data = { [Name in keyof typeof dataSchemas]: z.infer<(typeof dataSchemas)[Name]> };
export type TripMessage = UIMessage<z.infer<typeof metadataSchema>, Data, InferUITools<ReturnType<typeof createTools>>>;
