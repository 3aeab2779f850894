// The agent's calendar tools. The owner comes from the context of the message; the model cannot choose it.
import { type AppContext, defineTool, type Tool } from '@whoa/core';
import { z } from 'zod';
import type { Calendar } from './calendar.ts';

declare module '@whoa/core' {
  interface AppContext {
    /** Whose calendar it is. */
    readonly owner: string;
    /** The author of the message. */
    readonly guest: string;
  }
}

const slot = z.object({ at: z.string().regex(/^\d\d:\d\d$/) });

function whose(context: AppContext | undefined): AppContext {
  if (context === undefined) throw new Error('A message needs a context: whose calendar it is, and who writes');
  return context;
}

export function createTools(calendar: Calendar): readonly Tool[] {
  return [
    defineTool({
      name: 'find_free',
      description: 'Lists the free slots of today.',
      inputSchema: z.object({}),
      effects: 'read',
      replay: 'safe',
      async execute(_, { context, signal, update }) {
        const found: string[] = [];
        for await (const at of calendar.findFree(whose(context).owner, signal)) {
          found.push(at);
          // The slots found so far are kept if the call is interrupted.
          update(`Free: ${found.join(', ')}`);
        }
        return found.length === 0 ? 'Nothing is free.' : `Free: ${found.join(', ')}`;
      },
    }),
    defineTool({
      name: 'hold',
      description: 'Holds a slot for the guest, who has not confirmed it yet.',
      inputSchema: slot,
      effects: 'write',
      whenCancelled: 'finish',
      timeoutMs: 5_000,
      async execute({ at }, { context }) {
        const { owner, guest } = whose(context);
        if (!(await calendar.hold(owner, at, guest))) throw new Error(`${at} is taken.`);
        return `${at} is held for ${guest}.`;
      },
      // If the guest stops, nothing stays held. Releasing twice is harmless.
      undo: ({ input }, { context }) => calendar.release(whose(context).owner, input.at),
      undoRepeatable: true,
    }),
    defineTool({
      name: 'book',
      description: 'Books a slot for the guest.',
      inputSchema: slot,
      effects: 'write',
      exclusive: ({ at }) => [at],
      // Never interrupted: a newer message waits until it is done.
      whenCancelled: 'finish',
      timeoutMs: 15_000,
      async execute({ at }, { context }) {
        const { owner, guest } = whose(context);
        if (!(await calendar.book(owner, at, guest))) throw new Error(`${at} is taken.`);
        return `${at} is booked for ${guest}.`;
      },
    }),
  ] as readonly Tool[];
}
