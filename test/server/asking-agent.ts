import { createOpenAI } from '@ai-sdk/openai';
import { fromAiSdk } from '@whoa/ai-sdk';
import { type Agent, createAgent, defineTool } from '@whoa/core';
import type { TaskApprovals } from '@whoa/tasks';
import { z } from 'zod';

interface Asking {
  readonly url: string;
  readonly approvals: TaskApprovals;
  /** The commands that were allowed. */
  readonly ran: string[];
}

/** An agent whose only tool needs approval. */
export function createAskingAgent({ url, approvals, ran }: Asking): Agent {
  return createAgent({
    name: 'assistant',
    model: fromAiSdk(createOpenAI({ baseURL: url, apiKey: 'none' }).chat('gpt-4o')),
    approve: approvals.approve,
    tools: [
      defineTool({
        name: 'run',
        description: 'Runs.',
        inputSchema: z.object({ command: z.string() }),
        effects: 'execute',
        execute: ({ command }) => {
          ran.push(command);
          return 'it ran';
        },
      }),
    ],
  });
}
