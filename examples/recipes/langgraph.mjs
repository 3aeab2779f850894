// You keep LangGraph: its abort leaves a call without a result in the thread, and the next message is then rejected. Guard the
// tools, and after a cancel write the results of the open calls into the thread.
//
//   node scripts/recipe.ts langgraph
import { ToolMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { MemorySaver } from '@langchain/langgraph';
import { ChatOpenAI } from '@langchain/openai';
import { closeOpenCalls, createCallRecords, guardAiSdkTools } from '@whoa/ai-sdk';
import { startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { CancellationToken } from '@whoa/core';
import { createAgent } from 'langchain';
import { z } from 'zod';

const provider = await startLoopbackProvider({
  script: [
    { parts: [{ text: 'Sending it.' }, { call: 'send_report', id: 'call_1', input: { to: 'Ada' } }] },
    { parts: [{ text: 'I do not know whether it was sent.' }] },
  ],
});
const model = new ChatOpenAI({
  model: 'gpt-4o',
  apiKey: 'none',
  configuration: { baseURL: provider.url },
  maxRetries: 0,
});
const thread = { configurable: { thread_id: 'one' } };
const calls = createCallRecords();
const checkpointer = new MemorySaver();
const started = Promise.withResolvers();

/** An agent whose tools one token can stop. */
function agentUnder(token) {
  const execute = () => {
    started.resolve();
    return new Promise(() => {}); // It never returns and never listens.
  };
  const { send_report } = guardAiSdkTools({ send_report: { execute } }, { token, calls });
  const sendReport = tool(
    (input, { toolCall, signal }) => send_report.execute(input, { toolCallId: toolCall.id, abortSignal: signal }),
    { name: 'send_report', description: 'Sends the report', schema: z.object({ to: z.string() }) },
  );
  return createAgent({ model, tools: [sendReport], checkpointer });
}

async function say(agent, content, token) {
  const input = { messages: [{ role: 'user', content }] };
  const stream = await agent.stream(input, { ...thread, signal: token.signal, streamMode: ['messages', 'updates'] });
  for await (const _ of stream);
}

/** Writes a truthful result into the thread for every call without one. */
async function closeThread(agent) {
  const { messages } = (await agent.graph.getState(thread)).values;
  const answered = new Set(messages.map(({ tool_call_id }) => tool_call_id));
  const open = messages.flatMap(({ tool_calls = [] }) => tool_calls).filter(({ id }) => !answered.has(id));
  if (open.length === 0) return;
  const content = open.map(({ id, name }) => ({ type: 'tool-call', toolCallId: id, toolName: name }));
  const [, { content: results }] = closeOpenCalls([{ role: 'assistant', content }], calls);
  const told = results.map(
    ({ toolCallId, output }) => new ToolMessage({ tool_call_id: toolCallId, content: String(output.value) }),
  );
  await agent.graph.updateState(thread, { messages: told }, 'tools');
}

const token = new CancellationToken();
const agent = agentUnder(token);
const first = say(agent, 'Send the report to Ada', token).catch((error) => error.name);
await started.promise;
token.cancel({ kind: 'user' }, { mode: { abortMs: 100 } });
console.log(`The run ended: ${await first}`);
await calls.waitForIdle();
await closeThread(agent);
console.log(`send_report: ${calls.find('call_1').state}`);

const next = new CancellationToken();
await say(agentUnder(next), 'Was it sent?', next);
const { refusal, body } = provider.requests.at(-1);
console.log(`The provider ${refusal === undefined ? 'accepted' : 'refused'} the next turn.`);
console.log(`The model was told: ${body.messages.find(({ role }) => role === 'tool').content}`);
await provider.close();
