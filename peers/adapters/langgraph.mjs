// https://docs.langchain.com/oss/javascript/langchain/agents, /langchain/short-term-memory, /langchain/human-in-the-loop,
// /langchain/structured-output, /langchain/multi-agent/subagents, /langgraph/use-time-travel; AbortSignal and RunControl: reference of LangGraph.js
import { ChatAnthropic } from '@langchain/anthropic';
import { Command, MemorySaver, RunControl } from '@langchain/langgraph';
import { ChatOpenAI } from '@langchain/openai';
import { createAgent, humanInTheLoopMiddleware, tool } from 'langchain';
import { z } from 'zod';

const schema = z.object({ note: z.string() });

function createModel({ url, wire }) {
  if (wire === 'anthropic') return new ChatAnthropic({ model: 'claude', apiKey: 'none', anthropicApiUrl: url });
  return new ChatOpenAI({
    model: 'gpt-4o',
    apiKey: 'none',
    configuration: { baseURL: url },
    useResponsesApi: wire === 'responses',
  });
}

function create({ tools, helper, ...options }, extra = {}) {
  const own = tools.map(({ name, description, execute }) =>
    tool(async (_input, config) => execute({ signal: config.signal }), { name, description, schema }),
  );
  if (helper) {
    const subagent = create({ tools: helper, ...options });
    const ask = async ({ task }, { signal }) => {
      const config = { signal, configurable: { thread_id: crypto.randomUUID() } };
      return (await subagent.invoke({ messages: [{ role: 'user', content: task }] }, config)).messages.at(-1).text;
    };
    own.push(tool(ask, { name: 'helper', description: 'Helps.', schema: z.object({ task: z.string() }) }));
  }
  return createAgent({ model: createModel(options), tools: own, checkpointer: new MemorySaver(), ...extra });
}

function start(agent, input, { session = crypto.randomUUID(), signal }) {
  const controller = new AbortController();
  const control = new RunControl();
  const thread = { configurable: { thread_id: session } };
  const late = [];
  const names = new Map();
  let [text, isOver] = ['', false];
  const callbacks = [
    {
      handleToolStart: (_tool, _input, id, _parent, _tags, _metadata, name) => names.set(id, name),
      handleToolEnd: (_output, id) => isOver && late.push(names.get(id)),
    },
  ];
  const read = async () => {
    const config = { ...thread, signal: signal ?? controller.signal, control, callbacks, streamMode: 'messages' };
    const stream = await agent.stream({ messages: [{ role: 'user', content: input }] }, config);
    for await (const [message] of stream) if (message.getType() === 'ai') text += message.text;
  };
  const finish = async (error) => {
    isOver = true;
    const { values } = await agent.graph.getState(thread);
    const messages = values.messages ?? [];
    const asked = messages.findLastIndex((message) => message.getType() === 'human');
    const replies = messages.slice(asked + 1).filter((message) => message.getType() === 'ai');
    const used = replies.flatMap(({ usage_metadata }) => usage_metadata ?? []);
    const count = (field) => used.reduce((sum, usage) => sum + usage[field], 0);
    return {
      isCancelled: error?.name === 'AbortError' || error?.name === 'GraphDrained',
      says: error ? `throws ${error.name}: ${error.message}` : 'finished',
      text: replies.length > 0 ? replies.map((reply) => reply.text).join('') : undefined,
      usage: used.length > 0 ? { input: count('input_tokens'), output: count('output_tokens') } : undefined,
      reason: error?.message,
      session,
    };
  };
  return {
    ended: read().then(() => finish(), finish),
    text: () => text,
    late,
    cancel: (why) => controller.abort(new DOMException(why, 'AbortError')),
    stopSoftly: () => control.requestDrain('after this'),
  };
}

async function pause(options) {
  const agent = create(options, { middleware: [humanInTheLoopMiddleware({ interruptOn: { pay: true } })] });
  const thread = { configurable: { thread_id: 'pay' } };
  const first = await agent.invoke({ messages: [{ role: 'user', content: 'Pay' }] }, thread);
  return {
    paused: first.__interrupt__?.length === 1,
    async resume() {
      const yes = new Command({ resume: { decisions: [{ type: 'approve' }] } });
      return (await agent.invoke(yes, thread)).messages.at(-1).text;
    },
  };
}

async function travel(options) {
  const agent = create(options);
  const thread = { configurable: { thread_id: 'way' } };
  await agent.invoke({ messages: [{ role: 'user', content: 'Which way?' }] }, thread);
  for await (const { values, next, config } of agent.graph.getStateHistory(thread))
    if (next.length > 0 && values.messages?.length === 1)
      return (await agent.invoke(null, config)).messages.at(-1).text;
  return '';
}

export const peer = {
  name: 'LangGraph.js',
  wires: ['chat', 'responses', 'anthropic'],
  takesSignal: true,
  notOffered: {
    consent: 'the run ends with the question, so there is nothing to cancel; a later resume can still approve',
    steer: 'nothing can be added to a run in the library',
  },
  notRun: {
    elsewhere: 'the library knows a run only in its process; LangGraph Server can cancel runs, but was not run here',
    replace: 'LangGraph Server has multitaskStrategy: interrupt, but was not run here',
  },
  open(options) {
    const agent = create(options);
    return { start: (input, given = {}) => start(agent, input, given) };
  },
  pause,
  travel,
  async typed(options) {
    const agent = create(options, { responseFormat: z.object({ city: z.string() }) });
    const thread = { configurable: { thread_id: 'city' } };
    return (await agent.invoke({ messages: [{ role: 'user', content: 'Where?' }] }, thread)).structuredResponse;
  },
};
