// https://openai.github.io/openai-agents-js/guides/streaming, /guides/running-agents, /guides/tools#agents-as-tools,
// /guides/human-in-the-loop, /guides/agents#output-types
import { Agent, OpenAIProvider, Runner, RunState, setTracingDisabled, tool } from '@openai/agents';
import { z } from 'zod';

setTracingDisabled(true);
const parameters = z.object({ note: z.string() });

const toTool = ({ name, description, needsApproval = false, execute }) =>
  tool({
    name,
    description,
    parameters,
    needsApproval,
    execute: (_input, _context, details) => execute({ signal: details?.signal }),
  });

function create({ url, wire, tools, helper }, extra = {}) {
  const modelProvider = new OpenAIProvider({ apiKey: 'none', baseURL: url, useResponses: wire === 'responses' });
  const runner = new Runner({ modelProvider, tracingDisabled: true });
  const own = tools.map(toTool);
  if (helper) {
    const agent = new Agent({ name: 'Helper', model: 'gpt', tools: helper.map(toTool) });
    own.push(agent.asTool({ toolName: 'helper', toolDescription: 'Helps.', runConfig: { modelProvider } }));
  }
  return { runner, agent: new Agent({ name: 'Agent', model: 'gpt', tools: own, ...extra }) };
}

function start({ runner, agent }, input, { session = [], signal }) {
  const controller = new AbortController();
  const given = signal ?? controller.signal;
  const asked = [...session, { role: 'user', content: input }];
  const late = [];
  let [text, isOver, result] = ['', false, undefined];
  const onToolEnd = (_context, used) => isOver && late.push(used.name);
  agent.on('agent_tool_end', onToolEnd);
  const read = async () => {
    result = await runner.run(agent, asked, { stream: true, signal: given });
    for await (const event of result)
      if (event.type === 'raw_model_stream_event' && event.data.type === 'output_text_delta') text += event.data.delta;
    await result.completed;
  };
  const finish = (error) => {
    isOver = true;
    const used = result?.state.usage;
    const messages = result?.newItems.filter(({ type }) => type === 'message_output_item') ?? [];
    const isCancelled = result?.cancelled === true || error?.name === 'AbortError';
    return {
      isCancelled,
      says: error ? `throws ${error.name}: ${error.message}` : isCancelled ? 'cancelled: true' : 'finished',
      text: result?.finalOutput ?? (messages.length > 0 ? messages.map(({ content }) => content).join('') : undefined),
      usage: used && { input: used.inputTokens, output: used.outputTokens },
      reason: error ? error.message : undefined,
      session: result?.history ?? asked,
    };
  };
  return {
    ended: read().then(() => finish(result.error ?? undefined), finish),
    text: () => text,
    late,
    cancel: (why) => controller.abort(new DOMException(why, 'AbortError')),
  };
}

async function pause(options) {
  const { runner, agent } = create(options);
  const first = await runner.run(agent, 'Pay');
  const stored = first.state.toString();
  return {
    paused: first.interruptions.length === 1,
    async resume() {
      const state = await RunState.fromString(agent, stored);
      for (const interruption of state.getInterruptions()) state.approve(interruption);
      return (await runner.run(agent, state)).finalOutput ?? '';
    },
  };
}

export const peer = {
  name: 'OpenAI Agents',
  wires: ['responses', 'chat'],
  takesSignal: true,
  notOffered: {
    consent: 'the run ends with the question, so there is nothing to cancel; the holder of its state can still approve',
    'soft-stop': 'the JavaScript version has no such mode',
    elsewhere: 'a run is known only in its process',
  },
  open(options) {
    const created = create(options);
    return { start: (input, given = {}) => start(created, input, given) };
  },
  pause,
  async typed(options) {
    const { runner, agent } = create(options, { outputType: z.object({ city: z.string() }) });
    return (await runner.run(agent, 'Where?')).finalOutput;
  },
};
