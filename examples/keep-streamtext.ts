// You keep `streamText`; a tool that ignores its signal no longer holds you up, and the next turn knows what happened.
//
//   node --conditions=@whoa/source examples/keep-streamtext.ts
import { setTimeout as sleep } from 'node:timers/promises';
import { createAnthropic } from '@ai-sdk/anthropic';
import { closeOpenCalls, createCallLedger, guardAiSdkTools } from '@whoa/ai-sdk';
import { startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { CancellationToken } from '@whoa/core';
import { convertToModelMessages, isStepCount, streamText, tool, toUIMessageStream, type UIMessage } from 'ai';
import { z } from 'zod';

// A provider on this machine: it calls a tool first, then answers. It refuses broken histories as the real ones do.
await using provider = await startLoopbackProvider({
  script: [
    { parts: [{ text: ['Sending ', 'it now.'] }, { call: 'send_report', input: { to: 'Ada' } }] },
    { parts: [{ text: 'It may have been sent; I will look before I try again.' }] },
  ],
});
const model = createAnthropic({ baseURL: provider.url, apiKey: 'none' })('claude-sonnet-4-5');

const calls = createCallLedger();
const started = Promise.withResolvers<void>();
const tools = {
  send_report: tool({
    description: 'Sends the report',
    inputSchema: z.object({ to: z.string() }),
    async execute({ to }) {
      started.resolve();
      await sleep(1_000); // Deaf: it never looks at its signal.
      return `Sent to ${to}`;
    },
  }),
};

/** One turn under a token. The AI SDK's own UI stream keeps the words there were, also when it is aborted. */
async function turn(history: UIMessage[], token: CancellationToken): Promise<UIMessage[]> {
  const result = streamText({
    model,
    messages: closeOpenCalls(await convertToModelMessages(history), calls),
    tools: guardAiSdkTools(tools, { token, calls }),
    abortSignal: token.signal,
    stopWhen: [isStepCount(5), () => token.isCancelled],
  });
  let after = history;
  const ui = toUIMessageStream({
    stream: result.stream,
    originalMessages: history,
    onEnd({ messages }) {
      after = messages;
    },
  });
  for await (const part of ui) if (part.type === 'text-delta') process.stdout.write(part.delta);
  process.stdout.write('\n');
  await calls.waitForQuiet(); // Bounded by the ladder: what is still running then is given up on and written down.
  return after;
}

const say = (text: string): UIMessage => ({ id: crypto.randomUUID(), role: 'user', parts: [{ type: 'text', text }] });

using firstTurn = new CancellationToken();
const ending = turn([say('Send the report to Ada')], firstTurn);
await started.promise;
const cancelledAt = performance.now();
firstTurn.cancel({ kind: 'user', message: 'stop that' }, { how: { abortMs: 200 } });
const history = await ending;
console.log(`Stopped after ${Math.round(performance.now() - cancelledAt)} ms.`);
for (const { tool: name, state } of calls.records()) console.log(`${name}: ${state}`);

using secondTurn = new CancellationToken();
await turn([...history, say('Was it sent?')], secondTurn);
console.log(`The provider ${provider.requests[1]?.refusal === undefined ? 'accepted' : 'refused'} the next turn.`);
