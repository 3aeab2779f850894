// An A2A agent as the SDK's documentation builds one: node a2a-server.ts PORT BUG [FOLDER]. Instances with the same
// folder share their tasks. With `goes-on` it writes CANCELED and keeps working.
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AgentCard, Artifact, Task, TaskState } from '@a2a-js/sdk';
import {
  AgentEvent,
  type AgentExecutor,
  DefaultRequestHandler,
  type ExecutionEventBus,
  InMemoryTaskStore,
  type TaskStore,
} from '@a2a-js/sdk/server';
import { agentCardHandler, jsonRpcHandler, UserBuilder } from '@a2a-js/sdk/server/express';
import express from 'express';
import { runTurn } from './turn-loop.ts';

const [port = '', bug, folder] = process.argv.slice(2);
const running = new Map<string, { readonly contextId: string; readonly stopper: AbortController }>();

function setState(bus: ExecutionEventBus, ids: { taskId: string; contextId: string }, state: TaskState): void {
  const status = { state, message: undefined, timestamp: new Date().toISOString() };
  bus.publish(AgentEvent.statusUpdate({ ...ids, status, metadata: undefined }));
}

const executor: AgentExecutor = {
  async execute({ taskId, contextId, userMessage }, bus) {
    const stopper = new AbortController();
    const ids = { taskId, contextId };
    running.set(taskId, { contextId, stopper });
    bus.publish(AgentEvent.task(Task.fromJSON({ id: taskId, contextId, status: { state: 'TASK_STATE_WORKING' } })));
    const { signal } = bug === 'goes-on' ? new AbortController() : stopper;
    const [part] = userMessage.parts;
    const content = part?.content?.$case === 'text' ? part.content.value : '';
    const onText = (text: string): void => {
      const artifact = Artifact.fromJSON({ artifactId: 'text', parts: [{ text }] });
      bus.publish(AgentEvent.artifactUpdate({ ...ids, artifact, append: true, lastChunk: false, metadata: undefined }));
    };
    await runTurn([{ role: 'user', content }], { signal, onText });
    running.delete(taskId);
    setState(bus, ids, signal.aborted ? TaskState.TASK_STATE_CANCELED : TaskState.TASK_STATE_COMPLETED);
    bus.finished();
  },
  cancelTask(taskId, bus) {
    const task = running.get(taskId);
    task?.stopper.abort();
    if (bug === 'goes-on' && task !== undefined)
      setState(bus, { taskId, contextId: task.contextId }, TaskState.TASK_STATE_CANCELED);
    return Promise.resolve();
  },
};

/** Tasks as files: the store of the SDK overwrites, so this one does too. */
function createFileStore(at: string): TaskStore {
  mkdirSync(at, { recursive: true });
  const toFile = (id: string): string => join(at, `${encodeURIComponent(id)}.json`);
  return {
    save(task) {
      const draft = `${toFile(task.id)}.${process.pid}`;
      writeFileSync(draft, JSON.stringify(Task.toJSON(task)));
      renameSync(draft, toFile(task.id));
      return Promise.resolve();
    },
    load(id) {
      const task = existsSync(toFile(id)) ? Task.fromJSON(JSON.parse(readFileSync(toFile(id), 'utf8'))) : undefined;
      return Promise.resolve(task);
    },
    list: () => Promise.reject(new Error('tasks are not listed')),
  };
}

const card = AgentCard.fromJSON({
  name: 'Tiny agent',
  description: 'Answers.',
  version: '1',
  supportedInterfaces: [{ url: `http://127.0.0.1:${port}/a2a`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
  capabilities: { streaming: true },
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
});
const store = folder === undefined ? new InMemoryTaskStore() : createFileStore(join(folder, 'tasks'));
const requestHandler = new DefaultRequestHandler(card, store, executor);
const app = express();
app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler }));
app.use('/a2a', jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
app.listen(Number(port), '127.0.0.1');
process.once('SIGTERM', () => process.exit(0));
