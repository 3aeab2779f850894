// The chat route of the AI SDK's documentation (Advanced: Stopping Streams, AI SDK Core: Tool Calling, and Agents: Subagents for
// calls that were cancelled) on Hono, with one tool that runs a command.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { serve } from '@hono/node-server';
import {
  consumeStream,
  convertToModelMessages,
  createUIMessageStreamResponse,
  isStepCount,
  streamText,
  tool,
  toUIMessageStream,
} from 'ai';
import { Hono } from 'hono';
import { z } from 'zod';
import { runCommand } from './command.mjs';

const [port, baseURL] = process.argv.slice(2);
const model = createOpenAICompatible({ name: 'check', baseURL, apiKey: 'check' })('check');

const bash = tool({
  description: 'Runs a command',
  inputSchema: z.object({ command: z.string() }),
  execute: ({ command }, { abortSignal }) => runCommand(command, abortSignal),
});

const app = new Hono();
app.post('/api/chat', async (c) => {
  const { messages } = await c.req.json();
  const result = streamText({
    model,
    messages: await convertToModelMessages(messages, { ignoreIncompleteToolCalls: true }),
    abortSignal: c.req.raw.signal,
    tools: { bash },
    stopWhen: isStepCount(10),
  });
  return createUIMessageStreamResponse({
    stream: toUIMessageStream({ stream: result.stream }),
    consumeSseStream: consumeStream,
  });
});
serve({ fetch: app.fetch, port: Number(port), hostname: '127.0.0.1' });
