// https://ai-sdk.dev/docs/advanced/stopping-streams, /docs/ai-sdk-ui/chatbot-message-persistence, /docs/agents/loop-control#steering,
// /docs/agents/subagents, /docs/ai-sdk-core/tools-and-tool-calling#tool-approval, /docs/ai-sdk-core/generating-structured-data
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import {
  convertToModelMessages,
  experimental_createSteering as createSteering,
  generateText,
  isStepCount,
  Output,
  streamText,
  ToolLoopAgent,
  tool,
  toUIMessageStream,
} from 'ai';
import { z } from 'zod';

const inputSchema = z.object({ note: z.string() });
// A provider that stores nothing needs the items themselves.
const providerOptions = { openai: { store: false } };

function createModel({ url, wire }) {
  const options = { baseURL: url, apiKey: 'none' };
  if (wire === 'anthropic') return createAnthropic(options)('claude');
  const openai = createOpenAI(options);
  return wire === 'chat' ? openai.chat('gpt') : openai('gpt');
}

function createTools({ tools, helper, ...options }) {
  const own = tools.map(({ name, description, execute }) => [
    name,
    tool({ description, inputSchema, execute: async (_input, { abortSignal }) => execute({ signal: abortSignal }) }),
  ]);
  if (helper === undefined) return Object.fromEntries(own);
  const subagent = new ToolLoopAgent({
    model: createModel(options),
    tools: createTools({ tools: helper }),
    providerOptions,
  });
  const execute = async ({ task }, { abortSignal }) => (await subagent.generate({ prompt: task, abortSignal })).text;
  const inputs = z.object({ task: z.string() });
  return { ...Object.fromEntries(own), helper: tool({ description: 'Helps.', inputSchema: inputs, execute }) };
}

const toUser = (text) => ({ id: crypto.randomUUID(), role: 'user', parts: [{ type: 'text', text }] });

function start(options, input, { session = [], signal }) {
  const controller = new AbortController();
  const given = signal ?? controller.signal;
  const messages = [...session, toUser(input)];
  const steering = createSteering();
  const late = [];
  const used = [];
  let [text, isSoft, isOver, isAborted, reason, error] = ['', false, false, false, undefined, undefined];
  let kept = messages;
  const read = async () => {
    const result = streamText({
      model: createModel(options),
      tools: createTools(options),
      messages: await convertToModelMessages(messages, { ignoreIncompleteToolCalls: true }),
      abortSignal: given,
      providerOptions,
      experimental_steering: steering,
      stopWhen: [isStepCount(10), () => isSoft],
      onLanguageModelCallEnd: ({ usage }) => used.push(usage),
      onToolExecutionEnd: ({ toolCall }) => isOver && late.push(toolCall.toolName),
      onAbort: (event) => {
        isAborted = true;
        reason = event.reason;
      },
      onError: (event) => {
        error = event.error;
      },
    });
    const onEnd = (event) => {
      kept = event.messages;
      isAborted ||= event.isAborted;
    };
    const stream = toUIMessageStream({ stream: result.stream, originalMessages: messages, onEnd });
    for await (const part of stream) if (part.type === 'text-delta') text += part.delta;
  };
  const finish = () => {
    isOver = true;
    const parts = kept.at(-1)?.role === 'assistant' ? kept.at(-1).parts : [];
    const said = parts.filter(({ type }) => type === 'text').map((part) => part.text);
    const count = (field) => used.reduce((sum, usage) => sum + (usage?.[field] ?? 0), 0);
    const usage = used.length === 0 ? undefined : { input: count('inputTokens'), output: count('outputTokens') };
    const says = isAborted ? 'isAborted' : error ? `error: ${error.message}` : 'finished';
    return { isCancelled: isAborted, says, text: said.join(''), usage, reason: toWords(reason), session: kept };
  };
  const ended = read().catch((thrown) => {
    error = thrown;
  });
  return {
    ended: ended.then(finish),
    text: () => text,
    late,
    cancel: (why) => controller.abort(new DOMException(why, 'AbortError')),
    stopSoftly: () => {
      isSoft = true;
    },
    steer: (message) => steering.steer(message).catch(() => {}),
  };
}

const toWords = (reason) => (reason === undefined ? undefined : String(reason.message ?? reason));

async function pause(options) {
  const toolApproval = { pay: 'user-approval' };
  const common = { model: createModel(options), tools: createTools(options), toolApproval, providerOptions };
  const messages = [{ role: 'user', content: 'Pay' }];
  const first = await generateText({ ...common, messages });
  const asked = first.content.filter(({ type }) => type === 'tool-approval-request');
  const stored = JSON.stringify([...messages, ...first.response.messages]);
  const answers = asked.map(({ approvalId }) => ({ type: 'tool-approval-response', approvalId, approved: true }));
  return {
    paused: asked.length === 1,
    async resume() {
      const again = [...JSON.parse(stored), { role: 'tool', content: answers }];
      return (await generateText({ ...common, messages: again, stopWhen: isStepCount(5) })).text;
    },
  };
}

export const peer = {
  name: 'AI SDK',
  wires: ['responses', 'chat', 'anthropic'],
  takesSignal: true,
  notOffered: {
    consent:
      'the run ends with the question, so there is nothing to cancel; the holder of the messages can still approve',
    'time-travel': 'only the last reply can be asked for again (regenerate)',
    replace: 'messages can be steered or queued; to replace a reply, the application must stop it and start again',
    elsewhere: 'a run is known only in its process; the documentation leaves a stop endpoint to the application',
  },
  open: (options) => ({ start: (input, given = {}) => start(options, input, given) }),
  pause,
  async typed(options) {
    const output = Output.object({ schema: z.object({ city: z.string() }) });
    return (await generateText({ model: createModel(options), output, prompt: 'Where?', providerOptions })).output;
  },
};
