// docs/guides/agents/index.md, docs/guides/conversations.md, docs/guides/workers/index.md
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { fromAiSdk } from '@whoa/ai-sdk';
import {
  type Agent,
  createAgent,
  createAgentTool,
  createConversations,
  defineTool,
  type Message,
  type Outcome,
  type RunEvent,
  sleep,
  type Tool,
} from '@whoa/core';
import type { Approve } from '@whoa/core/approval';
import { describeReason } from '@whoa/core/embed';
import { createRunner, createTaskApprovals, createTaskStore, type TaskStore } from '@whoa/tasks';
import { type Containment, createBashTool, createContainment } from '@whoa/tools';
import { z } from 'zod';
import type { Ending, OpenOptions, Peer, PeerAgent, PeerRun, PeerTool, StartOptions } from '../core/peer.ts';

const tenant = 'peers';

function createModel({ url, wire }: OpenOptions) {
  const options = { baseURL: url, apiKey: 'none' };
  if (wire === 'anthropic') return fromAiSdk(createAnthropic(options)('claude'));
  const openai = createOpenAI(options);
  return fromAiSdk(wire === 'chat' ? openai.chat('gpt') : openai.responses('gpt'));
}

const toTool = (tool: PeerTool): Tool =>
  defineTool({
    name: tool.name,
    description: tool.description,
    inputSchema: z.object({ note: z.string() }),
    effects: tool.needsApproval ? 'write' : 'read',
    execute: (_input, { signal }) => tool.execute({ signal }),
  }) as Tool;

interface Parts {
  readonly containment?: Containment | undefined;
  readonly approve?: Approve;
}

function createPeerAgent(options: OpenOptions, { containment, approve = askInProcess(options) }: Parts = {}): Agent {
  const { tools, helper } = options;
  const own = tools.map(toTool);
  if (containment) own.push(createBashTool({ containment }) as Tool);
  if (helper) {
    const agent = createAgent({ name: 'helper', model: createModel(options), tools: helper.map(toTool) });
    own.push(createAgentTool(agent, { description: 'Helps.' }) as Tool);
  }
  const model = createModel(options);
  return createAgent({
    name: 'whoa',
    model,
    tools: own,
    ...(approve && { approve }),
  });
}

const askInProcess = ({ approve }: OpenOptions): Approve | undefined =>
  approve && ((_call, { signal }) => approve(signal));

function toEnding(outcome: Outcome): Ending {
  const { status, text, usage, messages } = outcome;
  return {
    isCancelled: status === 'cancelled',
    says: status === 'failed' ? `failed: ${String(outcome.error)}` : `status: ${status}`,
    text,
    usage: { input: usage.inputTokens, output: usage.outputTokens },
    reason: status === 'cancelled' ? describeReason(outcome.reason) : undefined,
    session: messages,
  };
}

function startRun(agent: Agent, input: string, { session, signal }: StartOptions): PeerRun {
  const late: string[] = [];
  const callIds = new Map<string, string>();
  const run = agent.run(input, {
    history: (session ?? []) as readonly Message[],
    ...(signal && { signal }),
    hooks: {
      'call-ended-late': ({ tool }) => late.push(tool),
      'call-start': ({ tool, callId }) => callIds.set(tool, callId),
    },
  });
  return {
    ended: run.outcome.then(toEnding),
    text: () => run.text,
    late,
    cancel: (reason) => run.cancel(reason, { mode: 'now' }),
    cancelCall: (tool) => run.cancelCall(callIds.get(tool)!, 'not this one', { mode: 'now' }),
    stopSoftly: () => run.cancel('after this', { mode: 'graceful' }),
    steer: (message) => run.steer(message),
  };
}

/** Replies of one conversation, in which a newer message takes the place of the current one. */
function converse(agent: Agent): PeerAgent {
  const conversations = createConversations({ agent, policy: 'replace' });
  const send = async (message: string, onEvent: (event: RunEvent) => void): Promise<Ending> => {
    const { outcome, status } = await conversations.processMessage('one', message, { onEvent });
    return outcome ? toEnding(outcome) : { isCancelled: true, says: status, session: undefined };
  };
  return {
    start(input) {
      let text = '';
      const ended = send(input, (event) => {
        if (event.type === 'text') text += event.text;
      });
      return {
        ended,
        text: () => text,
        cancel: (reason) => conversations.cancel('one', reason, { mode: 'now' }),
        replace: (message) => send(message, () => {}),
      };
    },
    close: () => conversations[Symbol.asyncDispose](),
  };
}

async function withStore<T>(folder: string, use: (store: TaskStore) => Promise<T>): Promise<T> {
  const store = createTaskStore({ backend: 'sqlite', file: join(folder, 'tasks.db') });
  try {
    return await use(store);
  } finally {
    await store[Symbol.asyncDispose]();
  }
}

export const peer: Peer = {
  name: 'Whoa',
  wires: ['chat', 'responses', 'anthropic'],
  takesSignal: true,
  shell: 'bash',
  notOffered: {},
  open(options) {
    const containment = options.shell ? createContainment() : undefined;
    const agent = createPeerAgent(options, { containment });
    if (options.isConversation) return converse(agent);
    return {
      start: (input, start = {}) => startRun(agent, input, start),
      close: () => containment?.[Symbol.asyncDispose](),
    };
  },
  /** The question waits in the store: the first worker is gone before the answer comes, and another one continues. */
  pause: async (options) => {
    const folder = mkdtempSync(join(tmpdir(), 'whoa-peer-'));
    const store = createTaskStore({ backend: 'sqlite', file: join(folder, 'tasks.db') });
    const startWorker = () => {
      const approvals = createTaskApprovals({ parkAfterMs: 0 });
      const agent = createPeerAgent(options, { approve: approvals.approve });
      return createRunner({ store, agents: { whoa: agent }, approvals });
    };
    const receipt = await store.create({ tenant, agent: 'whoa', input: 'Begin' });
    if (!('task' in receipt)) throw new Error(receipt.result);
    const { id } = receipt.task;
    const first = startWorker();
    await first.serve();
    const ask = async () => (await store.questions({ tenant })).questions[0];
    let question = await ask();
    for (; question === undefined; question = await ask()) await sleep(10);
    await first.stop();
    return {
      paused: (await store.get({ tenant, id }))?.waiting === 1,
      resume: async () => {
        await store.answer({ tenant, id: question.id }, { value: { decision: 'yes' }, by: 'ann' });
        await using second = startWorker();
        const { answer } = await second.runExisting({ tenant, id });
        await store[Symbol.asyncDispose]();
        rmSync(folder, { recursive: true });
        return answer;
      },
    };
  },
  elsewhere: {
    enqueue: (folder) =>
      withStore(folder, async (store) => {
        const receipt = await store.create({ tenant, agent: 'whoa', input: 'Begin' });
        return receipt.result === 'created' ? receipt.task.id : receipt.result;
      }),
    work: (folder, options) =>
      withStore(folder, async (store) => {
        // The lease is short so that the crash is noticed soon.
        const runner = createRunner({ store, agents: { whoa: createPeerAgent(options) }, leaseMs: 2_000 });
        await runner.serve();
        await once(process.stdin, 'end');
        await runner[Symbol.asyncDispose]();
      }),
    cancel: (folder, id) =>
      withStore(folder, async (store) => {
        await store.cancel({ tenant, id }, { kind: 'user' }, { mode: 'now' });
      }),
    status: (folder, id) => withStore(folder, async (store) => (await store.get({ tenant, id }))?.status ?? 'unknown'),
  },
};
