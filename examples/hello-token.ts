// Start an operation, cancel it from somewhere else, and keep the finished results.
import { CancellationToken, createRuntime, defineTool, isCancelledError, toText } from '@whoa/core';
import { z } from 'zod';

const check = defineTool({
  name: 'check_availability',
  description: 'Asks one calendar.',
  inputSchema: z.object({ who: z.string() }),
  effects: 'read',
  execute: async ({ who }) => {
    await new Promise((resolve) => setTimeout(resolve, 100));
    return `${who} is free at ten`;
  },
});

// Create a token.
const token = new CancellationToken();

// Start an operation: two waves, because carol is only asked after anna and bob have answered.
const runtime = createRuntime({ tools: [check] });
const operation = runtime.execute(
  [
    { id: 'anna', tool: 'check_availability', input: { who: 'anna' } },
    { id: 'bob', tool: 'check_availability', input: { who: 'bob' } },
    { id: 'carol', tool: 'check_availability', input: { who: 'carol' }, dependsOn: ['anna', 'bob'] },
  ],
  { token },
);

// Cancel from another context, for example because a new message arrived.
setTimeout(() => {
  const receipt = token.cancel({ kind: 'superseded', message: 'a newer message arrived' });
  console.log(`cancel: ${receipt.result}`);
}, 50);

// The operation stops gracefully: the wave under way finishes, the next one never starts.
try {
  await operation;
} catch (error) {
  if (!isCancelledError(error)) throw error;
  console.log(error.message);
  for (const { callId, state, content } of error.partial as Awaited<typeof operation>)
    console.log(`  ${callId}: ${state}, "${toText(content)}"`);
}
token[Symbol.dispose]();
