// The runtime of CopilotKit's documentation (Backend: Copilot Runtime) on Node, with a BuiltInAgent whose factory calls the AI
// SDK, forwards the signal that it is given, and has one tool that runs a command.
import { exec } from 'node:child_process';
import { createServer } from 'node:http';
import { promisify } from 'node:util';
import { createOpenAI } from '@ai-sdk/openai';
import {
  BuiltInAgent,
  CopilotRuntime,
  convertMessagesToVercelAISDKMessages,
  InMemoryAgentRunner,
} from '@copilotkit/runtime/v2';
import { createCopilotNodeListener } from '@copilotkit/runtime/v2/node';
import { stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';

const [port, baseURL] = process.argv.slice(2);
const model = createOpenAI({ baseURL, apiKey: 'check' }).chat('check');
const run = promisify(exec);

const bash = tool({
  description: 'Runs a command',
  inputSchema: z.object({ command: z.string() }),
  execute: async ({ command }, { abortSignal }) => (await run(command, { signal: abortSignal })).stdout,
});

const agent = new BuiltInAgent({
  type: 'aisdk',
  factory: ({ input, abortSignal }) =>
    streamText({
      model,
      messages: convertMessagesToVercelAISDKMessages(input.messages),
      tools: { bash },
      stopWhen: stepCountIs(10),
      abortSignal,
    }),
});
const runtime = new CopilotRuntime({ agents: { default: agent }, runner: new InMemoryAgentRunner() });
const listener = createCopilotNodeListener({ runtime, basePath: '/api/copilotkit' });
createServer(listener).listen(Number(port), '127.0.0.1');
