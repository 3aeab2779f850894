// https://tanstack.com/ai/latest/docs/chat/streaming, /docs/api/ai, /docs/api/ai-client, /docs/tools/server-tools, /docs/tools/tool-approval,
// /docs/advanced/middleware, /docs/chat/structured-outputs, and the skills in the package (queueing: ai-core/chat-experience)
import { setTimeout as wait } from 'node:timers/promises';
import { chat, maxIterations, streamToText, toolDefinition } from '@tanstack/ai';
import { createAnthropicChat } from '@tanstack/ai-anthropic';
import { ChatClient } from '@tanstack/ai-client';
import { createOpenaiChat, createOpenaiChatCompletions } from '@tanstack/ai-openai';
import { z } from 'zod';

const inputSchema = z.object({ note: z.string() });

function createAdapter({ url, wire }) {
  // The package of this vendor adds its own version to the address.
  if (wire === 'anthropic')
    return createAnthropicChat('claude-sonnet-4-5', 'none', { baseURL: url.replace(/\/v1$/, '') });
  const create = wire === 'chat' ? createOpenaiChatCompletions : createOpenaiChat;
  return create('gpt-4o', 'none', { baseURL: url });
}

function follow(signal) {
  const controller = new AbortController();
  if (signal?.aborted) controller.abort(signal.reason);
  else signal?.addEventListener('abort', () => controller.abort(signal.reason), { once: true });
  return controller;
}

const define = ({ name, description, needsApproval = false }) =>
  toolDefinition({ name, description, inputSchema, needsApproval });

function createTools({ tools, helper, ...options }) {
  const own = tools.map((tool) =>
    define(tool).server((_input, context) => tool.execute({ signal: context?.abortSignal })),
  );
  if (helper === undefined) return own;
  const about = { name: 'helper', description: 'Helps.', inputSchema: z.object({ task: z.string() }) };
  const ask = ({ task }, context) =>
    streamToText(
      chat({
        adapter: createAdapter(options),
        messages: [{ role: 'user', content: task }],
        tools: createTools({ tools: helper, ...options }),
        abortController: follow(context?.abortSignal),
      }),
    );
  return [...own, toolDefinition(about).server(ask)];
}

/** A chat in this process, with the events that the last run sent to its middleware. */
function createChat(options) {
  const run = { usage: undefined, isAborted: false, isOver: false, isSoft: false, late: [], reason: undefined };
  const middleware = {
    name: 'observer',
    onUsage: (_context, usage) => {
      run.usage ??= { input: 0, output: 0 };
      run.usage.input += usage.promptTokens ?? 0;
      run.usage.output += usage.completionTokens ?? 0;
    },
    onAfterToolCall: (_context, { toolName }) => run.isOver && run.late.push(toolName),
    onAbort: (_context, { reason }) => {
      run.isAborted = true;
      run.reason = reason;
    },
  };
  const fetcher = ({ messages, threadId, runId, parentRunId, resume }, { signal }) =>
    chat({
      adapter: createAdapter(options),
      messages,
      threadId,
      runId,
      ...(parentRunId && { parentRunId }),
      ...(resume && { resume }),
      tools: createTools(options),
      agentLoopStrategy: (state) => !run.isSoft && maxIterations(10)(state),
      abortController: run.signal ? { signal: run.signal } : follow(signal),
      middleware: [middleware],
    });
  const tools = options.tools.map(define);
  const client = new ChatClient({ fetcher, tools, onError: (error) => (run.error = error) });
  return { client, run };
}

const toText = (message) =>
  (message?.role === 'assistant' ? message.parts : [])
    .filter(({ type }) => type === 'text')
    .map(({ content }) => content)
    .join('');

function start(created, input, { signal }) {
  const { client, run } = created;
  Object.assign(run, {
    usage: undefined,
    isAborted: false,
    isOver: false,
    isSoft: false,
    error: undefined,
    reason: undefined,
    signal,
  });
  run.late = [];
  const finish = (error = run.error) => {
    run.isOver = true;
    const last = client.getMessages().at(-1);
    return {
      isCancelled: run.isAborted,
      says: run.isAborted ? 'onAbort' : error ? `error: ${error.message}` : 'finished',
      text: last?.role === 'assistant' ? toText(last) : undefined,
      usage: run.usage,
      reason: run.reason,
      session: created,
    };
  };
  const send = (message, options) => client.sendMessage(message, undefined, options).then(() => finish(), finish);
  return {
    ended: send(input),
    text: () => toText(client.getMessages().at(-1)),
    late: run.late,
    cancel: () => client.stop(),
    stopSoftly: () => {
      run.isSoft = true;
    },
    replace: (message) => send(message, { whenBusy: 'interrupt' }),
  };
}

async function pause(options) {
  const { client } = createChat(options);
  await client.sendMessage('Pay');
  return {
    paused: client.getInterrupts().length === 1,
    async resume() {
      client.resolveInterrupts(true);
      // The answer is sent separately: the reply arrives some time later.
      for (let look = 0; look < 300 && !toText(client.getMessages().at(-1)); look++) await wait(10);
      return toText(client.getMessages().at(-1));
    },
  };
}

export const peer = {
  name: 'TanStack AI',
  wires: ['responses', 'chat', 'anthropic'],
  takesSignal: true,
  notOffered: {
    consent:
      'the run ends with the question, so there is nothing to cancel; the question itself can be cancelled, until it is answered',
    'time-travel': 'only the last reply can be asked for again (reload)',
    steer: 'a message sent while a run works waits for its end, or interrupts it',
    elsewhere:
      'a cancel request can be recorded in a RunStore, but the application must provide a durable one, and make the run look at it',
  },
  open(options) {
    return { start: (input, { session = createChat(options), signal } = {}) => start(session, input, { signal }) };
  },
  pause,
  typed: (options) =>
    chat({
      adapter: createAdapter(options),
      messages: [{ role: 'user', content: 'Where?' }],
      outputSchema: z.object({ city: z.string() }),
    }),
};
