// https://mastra.ai/docs/agents/overview, /reference/streaming/agents/stream, /docs/memory/overview, /docs/subagents, /docs/agents/human-in-the-loop,
// /docs/harness/signals, /docs/sandbox/overview, /reference/agents/generate
import { tmpdir } from 'node:os';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { Mastra } from '@mastra/core';
import { Agent } from '@mastra/core/agent';
import { InMemoryStore } from '@mastra/core/storage';
import { createTool } from '@mastra/core/tools';
import { LocalSandbox, Workspace } from '@mastra/core/workspace';
import { Memory } from '@mastra/memory';
import { z } from 'zod';

const inputSchema = z.object({ note: z.string() });
const resource = 'user';

function createModel({ url, wire }) {
  const options = { baseURL: url, apiKey: 'none' };
  if (wire === 'anthropic') return createAnthropic(options)('claude');
  const openai = createOpenAI(options);
  return wire === 'chat' ? openai.chat('gpt') : openai('gpt');
}

function createPlain(name, { tools, ...options }, extra = {}) {
  const own = tools.map(({ name: id, description, needsApproval = false, execute }) =>
    createTool({
      id,
      description,
      inputSchema,
      requireApproval: needsApproval,
      execute: async (_input, context) => execute({ signal: context?.abortSignal }),
    }),
  );
  const byName = Object.fromEntries(own.map((tool) => [tool.id, tool]));
  const about = { id: name, name, description: 'Helps.', instructions: 'Help.' };
  return new Agent({ ...about, model: createModel(options), tools: byName, ...extra });
}

function create({ helper, shell, ...options }) {
  const storage = new InMemoryStore();
  const extra = { memory: new Memory({ storage }) };
  if (helper) extra.agents = { helper: createPlain('helper', { ...options, tools: helper }) };
  if (shell) extra.workspace = new Workspace({ sandbox: new LocalSandbox({ workingDirectory: tmpdir() }) });
  const agent = createPlain('agent', options, extra);
  new Mastra({ agents: { agent }, storage, logger: false });
  return agent;
}

function start(agent, input, { session = crypto.randomUUID(), signal }) {
  const controller = new AbortController();
  let [text, isSoft, isAborted, result] = ['', false, false, undefined];
  const read = async () => {
    result = await agent.stream(input, {
      memory: { thread: session, resource },
      abortSignal: signal ?? controller.signal,
      maxSteps: 10,
      stopWhen: () => isSoft,
      onError: () => {},
      onAbort: () => {
        isAborted = true;
      },
    });
    for await (const chunk of result.fullStream) if (chunk.type === 'text-delta') text += chunk.payload.text;
    const [said, finish, usage] = await Promise.all([result.text, result.finishReason, result.totalUsage]);
    return { said, finish, usage };
  };
  const finish = ({ said, finish: why, usage }) => ({
    isCancelled: isAborted || why === 'aborted' || result.status === 'canceled',
    says: `finishReason: ${why}${isAborted ? ' and onAbort' : ''}${result.error ? `, ${result.error.message}` : ''}`,
    text: said,
    usage: usage?.inputTokens === undefined ? undefined : { input: usage.inputTokens, output: usage.outputTokens ?? 0 },
    session,
  });
  const fail = (error) => ({
    isCancelled: error?.name === 'AbortError',
    says: `throws ${error?.name}: ${error?.message}`,
    reason: error?.message,
    session,
  });
  return {
    ended: read().then(finish, fail),
    text: () => text,
    cancel: (why) => controller.abort(new DOMException(why, 'AbortError')),
    stopSoftly: () => {
      isSoft = true;
    },
    steer: (message) => agent.sendMessage(message, { resourceId: resource, threadId: session }),
  };
}

async function pause(options) {
  const agent = create(options);
  const first = await agent.generate('Pay', { memory: { thread: 'pay', resource } });
  const { toolCallId } = first.suspendPayload ?? {};
  return {
    paused: first.finishReason === 'suspended',
    resume: async () => (await agent.approveToolCallGenerate({ runId: first.runId, toolCallId })).text,
  };
}

export const peer = {
  name: 'Mastra',
  wires: ['responses', 'chat', 'anthropic'],
  takesSignal: true,
  shell: 'mastra_workspace_execute_command',
  helper: 'agent-helper',
  notOffered: {
    consent:
      'the run is suspended with the question, so there is nothing to cancel; a later approval still runs the call',
    replace: 'messages can be sent or queued; to replace a reply, the application must stop it and start again',
  },
  notRun: {
    elsewhere:
      'a durable agent can be stopped by its id from a process that shares a Redis with it; that was not run here',
  },
  open(options) {
    const agent = create(options);
    return { start: (input, given = {}) => start(agent, input, given) };
  },
  pause,
  async typed(options) {
    const structuredOutput = { schema: z.object({ city: z.string() }) };
    return (await create(options).generate('Where?', { structuredOutput })).object;
  },
};
