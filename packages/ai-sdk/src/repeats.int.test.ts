import { createAgent, defineTool } from '@whoa/core';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { formats, loopbackModel } from '../../../test/ai-sdk/providers.ts';
import { startLoopbackProvider } from './testing/index.ts';

const LOOP = Array.from({ length: 220 }, (_, at) => ({
  parts: [{ call: 'read_file', id: `call_${at}`, input: { path: 'README.md' } }],
}));

async function loop(format: (typeof formats)[number], repeats: 'allowed' | undefined) {
  let ran = 0;
  await using provider = await startLoopbackProvider({ script: [...LOOP, { parts: [{ text: 'Done.' }] }] });
  const readFile = defineTool({
    name: 'read_file',
    description: 'Reads a file',
    inputSchema: z.object({ path: z.string() }),
    effects: 'read',
    repeats,
    execute: () => `# Read ${++ran && 'me'}`,
  });
  const model = loopbackModel(format, provider.url);
  const agent = createAgent({ name: 'reader', model, tools: [readFile], budgets: { repeats: 3 } });
  const outcome = await agent.run('Read it').outcome;
  const bodies = provider.requests.map(({ body }) => JSON.stringify(body));
  const told = bodies.findIndex((body) => body.includes('the same call was made 3 times with the same result'));
  return { outcome, ran, requests: bodies.length, told };
}

test.each(formats)(
  '%s: a model that makes one call 220 times reads why at the 4th and ends at the 6th',
  async (format) => {
    const { outcome, ran, requests, told } = await loop(format, undefined);
    // The 5th request carries the result of the 4th call.
    expect({ ran, requests, told }).toEqual({ ran: 3, requests: 6, told: 4 });
    expect(outcome).toMatchObject({ status: 'cancelled', reason: { kind: 'budget' } });
  },
);

test.each(formats)('%s: a tool that polls is left alone', async (format) => {
  const { outcome, ran, told } = await loop(format, 'allowed');
  expect([outcome.status, ran, told]).toEqual(['success', 220, -1]);
});
