// A server as the README of @a2a-js/sdk and its sample `cancellable-agent` build it: DefaultRequestHandler, InMemoryTaskStore, and
// an executor with `cancelTask`. The executor asks a model and has one tool that runs a command; its cancel aborts both, and the
// task ends as canceled.
import { A2A_PROTOCOL_VERSION, AGENT_CARD_PATH, TaskState } from '@a2a-js/sdk';
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { agentCardHandler, jsonRpcHandler, UserBuilder } from '@a2a-js/sdk/server/express';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { isStepCount, streamText, tool } from 'ai';
import express from 'express';
import { z } from 'zod';
import { runCommand } from './command.mjs';

const [port, baseURL] = process.argv.slice(2);
const model = createOpenAICompatible({ name: 'check', baseURL, apiKey: 'check' })('check');

const bash = tool({
  description: 'Runs a command',
  inputSchema: z.object({ command: z.string() }),
  execute: ({ command }, { abortSignal }) => runCommand(command, abortSignal),
});

class Executor {
  running = new Map();

  cancelTask = async (taskId) => this.running.get(taskId)?.abort();

  async execute({ userMessage, task, taskId, contextId }, bus) {
    const controller = new AbortController();
    this.running.set(taskId, controller);
    const status = (state) => ({ state, timestamp: new Date().toISOString(), message: undefined });
    const publish = (state) =>
      bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: status(state), metadata: {} }));
    try {
      const history = [userMessage];
      const submitted = status(TaskState.TASK_STATE_SUBMITTED);
      bus.publish(
        AgentEvent.task(task ?? { id: taskId, contextId, status: submitted, artifacts: [], history, metadata: {} }),
      );
      publish(TaskState.TASK_STATE_WORKING);
      const prompt = userMessage.parts.map(({ content }) => (content?.$case === 'text' ? content.value : '')).join('');
      const { textStream } = streamText({
        model,
        prompt,
        tools: { bash },
        stopWhen: isStepCount(10),
        abortSignal: controller.signal,
        onError: () => {},
      });
      let isFirst = true;
      for await (const value of textStream) {
        const part = { content: { $case: 'text', value }, metadata: undefined, filename: '', mediaType: 'text/plain' };
        const artifact = {
          artifactId: taskId,
          name: 'reply',
          description: '',
          parts: [part],
          metadata: {},
          extensions: [],
        };
        bus.publish(
          AgentEvent.artifactUpdate({ taskId, contextId, artifact, lastChunk: false, append: !isFirst, metadata: {} }),
        );
        isFirst = false;
      }
      publish(controller.signal.aborted ? TaskState.TASK_STATE_CANCELED : TaskState.TASK_STATE_COMPLETED);
    } catch {
      publish(controller.signal.aborted ? TaskState.TASK_STATE_CANCELED : TaskState.TASK_STATE_FAILED);
    } finally {
      this.running.delete(taskId);
    }
  }
}

const url = `http://127.0.0.1:${port}/`;
const card = {
  name: 'Check',
  description: 'Asks a model and runs commands',
  supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', tenant: '', protocolVersion: A2A_PROTOCOL_VERSION }],
  provider: undefined,
  version: '1.0.0',
  capabilities: { streaming: true, pushNotifications: false, extensions: [], extendedAgentCard: false },
  securitySchemes: {},
  securityRequirements: [],
  defaultInputModes: ['text'],
  defaultOutputModes: ['text'],
  skills: [],
  documentationUrl: '',
  signatures: [],
};
const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Executor());
const app = express();
app.use(`/${AGENT_CARD_PATH}`, agentCardHandler({ agentCardProvider: requestHandler }));
app.use(jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
app.listen(Number(port), '127.0.0.1');
