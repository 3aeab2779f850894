// You keep Mastra: it waits for a tool as long as the tool takes, even after an abort. Guard the tools, and the run settles
// when the ladder ends, with a message that tells the model how the call ended.
//
//   node scripts/recipe.ts mastra
import { createOpenAI } from '@ai-sdk/openai';
import { Mastra } from '@mastra/core';
import { Agent } from '@mastra/core/agent';
import { InMemoryStore } from '@mastra/core/storage';
import { createTool } from '@mastra/core/tools';
import { Memory } from '@mastra/memory';
import { createCallRecords, guardAiSdkTools } from '@whoa/ai-sdk';
import { startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { CancellationToken, isCancelledError } from '@whoa/core';
import { z } from 'zod';

const provider = await startLoopbackProvider({
  script: [
    { parts: [{ text: 'Sending it.' }, { call: 'send_report', id: 'call_1', input: { to: 'Ada' } }] },
    { parts: [{ text: 'I do not know whether it was sent.' }] },
  ],
});
const model = createOpenAI({ baseURL: provider.url, apiKey: 'none' }).chat('gpt-4o');
const storage = new InMemoryStore();
const memory = { thread: 'one', resource: 'ada' };
const calls = createCallRecords();
const started = Promise.withResolvers();

const TOLD = {
  'not-started': 'Not started: it had no effect.',
  interrupted: 'Interrupted before it finished. It may have taken effect in part.',
  unknown: 'Outcome unknown: it was still running when the wait for it ended. It may have taken effect.',
};

/** Mastra drops a call that failed during an abort, but keeps one whose message says how it ended. */
function tellTheModel(error) {
  if (!isCancelledError(error)) throw error;
  return TOLD[error.partial.state];
}

/** An agent whose tools one token can stop. */
function agentUnder(token) {
  const execute = () => {
    started.resolve();
    return new Promise(() => {}); // It never returns and never listens.
  };
  const { send_report } = guardAiSdkTools({ send_report: { execute } }, { token, calls });
  const agent = new Agent({
    id: 'assistant',
    name: 'assistant',
    instructions: 'Be brief.',
    model,
    memory: new Memory({ storage, options: { generateTitle: false } }),
    tools: {
      send_report: createTool({
        id: 'send_report',
        description: 'Sends the report',
        inputSchema: z.object({ to: z.string() }),
        execute: (input, { agent: { toolCallId }, abortSignal }) =>
          send_report.execute(input, { toolCallId, abortSignal }).catch(tellTheModel),
      }),
    },
  });
  new Mastra({ agents: { assistant: agent }, storage, logger: false });
  return agent;
}

async function say(agent, text, token) {
  const { fullStream } = await agent.stream(text, { memory, abortSignal: token.signal, maxSteps: 3 });
  for await (const _ of fullStream);
}

const token = new CancellationToken();
const first = say(agentUnder(token), 'Send the report to Ada', token);
await started.promise;
const cancelledAt = performance.now();
token.cancel({ kind: 'user' }, { mode: { abortMs: 100 } });
await first;
console.log(`The run ended after ${Math.round(performance.now() - cancelledAt)} ms.`);
console.log(`send_report: ${calls.find('call_1').state}`);

const next = new CancellationToken();
await say(agentUnder(next), 'Was it sent?', next);
const { refusal, body } = provider.requests.at(-1);
console.log(`The provider ${refusal === undefined ? 'accepted' : 'refused'} the next turn.`);
console.log(`The model was told: ${body.messages.find(({ role }) => role === 'tool')?.content}`);
await provider.close();
