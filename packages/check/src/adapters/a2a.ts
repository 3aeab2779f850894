import { randomUUID } from 'node:crypto';
import type { Part, StreamResponse, TaskStatus } from '@a2a-js/sdk';
import type { Client } from '@a2a-js/sdk/client';
import type { Adapter, Connection, Conversation, Features, TurnEnd } from '../adapter.ts';
import { within } from '../clock.ts';
import { TurnLog } from '../turn-log.ts';
import { type AgentServerOptions, createServerAdapter } from './agent-server.ts';
import { describeError } from './describe-error.ts';
import { loadLibrary } from './load-library.ts';

/** How long an agent may take to name a task before it is cancelled. */
const NAME_MS = 5_000;

const CONTEXTS = 'the protocol leaves it to agents whether they remember a context';

const FEATURES: Features = {
  cancel: true,
  conversation: CONTEXTS,
  'one-piece': 'a cancel is another request',
  outcome: true,
  calls: 'a task does not show the calls of its agent',
  'cancel-by-id': true,
  'cancel-request': 'there is only one way to cancel',
  close: CONTEXTS,
  status: true,
};

/**
 * Checks an agent that supports A2A, by the official client. `url` is where its agent card is found.
 *
 * @returns The adapter, for `runChecks`.
 */
export function createA2aAdapter(options: AgentServerOptions): Adapter {
  const connect = async (url: string): Promise<Connection> => {
    const client = await createClient(url, options);
    const { name, version } = await client.getAgentCard();
    return createConnection(client, `${name} ${version}`.trim());
  };
  return createServerAdapter({ protocol: 'a2a', features: FEATURES, connect }, options);
}

async function createClient(url: string, { headers = {} }: AgentServerOptions): Promise<Client> {
  const { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory, RestTransportFactory } = await loadLibrary(
    '@a2a-js/sdk',
    () => import('@a2a-js/sdk/client'),
  );
  const fetchImpl: typeof fetch = (input, init) => {
    const all = new Headers(init?.headers);
    for (const [name, value] of Object.entries(headers)) all.set(name, value);
    return fetch(input, { ...init, headers: all });
  };
  const factory = new ClientFactory({
    transports: [new JsonRpcTransportFactory({ fetchImpl }), new RestTransportFactory({ fetchImpl })],
    cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
  });
  return factory.createFromUrl(url);
}

/** A client of one A2A agent. */
function createConnection(client: Client, agent: string): Connection {
  const closing = new AbortController();
  return {
    agent,
    // A task that needs input ends its stream, and gets the input with another message.
    answerQuestions() {},
    open: () => Promise.resolve(createConversation(client, closing.signal)),
    cancelUnknown: () => cancelTask(client, randomUUID()),
    status: async (id) => findTurnEnd((await client.getTask({ tenant: '', id })).status)?.kind ?? 'running',
    cancelTask: (id) => cancelTask(client, id),
    [Symbol.asyncDispose]() {
      closing.abort();
      return Promise.resolve();
    },
  };
}

async function cancelTask(client: Client, id: string): Promise<string> {
  try {
    const { status } = await client.cancelTask({ tenant: '', id, metadata: undefined });
    return `the cancel was answered with the state ${describeStatus(status)}`;
  } catch (error) {
    const { name, message } = error as Error;
    return `the cancel was refused: ${name}: ${message}`;
  }
}

/** Messages in one context. */
function createConversation(client: Client, closing: AbortSignal): Conversation {
  let contextId = '';
  let last: TurnLog | undefined;
  const read = async (prompt: string, turn: TurnLog): Promise<void> => {
    const { SendMessageRequest } = await import('@a2a-js/sdk');
    const parts = [{ text: prompt }];
    const message = { messageId: randomUUID(), role: 'ROLE_USER', parts, ...(contextId !== '' && { contextId }) };
    const request = SendMessageRequest.fromJSON({ message });
    for await (const { payload } of client.sendMessageStream(request, { signal: closing })) {
      if (payload?.$case === 'task') {
        turn.named.resolve(payload.value.id);
        contextId = payload.value.contextId;
      }
      recordPayload(turn, payload);
    }
    if (!turn.hasEnded) turn.end('gone', 'the stream ended before the task did');
  };
  return {
    start(prompt) {
      const turn = new TurnLog();
      last = turn;
      read(prompt, turn).catch((error: Error) => {
        turn.named.reject(error);
        turn.end(closing.aborted ? 'gone' : 'error', describeError(error));
      });
      return turn;
    },
    async cancel() {
      if (last === undefined) return;
      const id = last.id();
      if (!(await within(NAME_MS, id)))
        throw new Error('the agent did not report a task id, so the task cannot be cancelled');
      await cancelTask(client, await id);
    },
  };
}

function recordPayload(turn: TurnLog, payload: StreamResponse['payload']): void {
  if (payload?.$case === 'artifactUpdate') turn.record({ what: 'text', text: toText(payload.value.artifact?.parts) });
  else if (payload?.$case === 'message') {
    turn.record({ what: 'text', text: toText(payload.value.parts) });
    turn.end('completed', 'a message instead of a task');
  } else if (payload !== undefined) {
    const { status } = payload.value;
    const end = findTurnEnd(status);
    if (end !== undefined) turn.record({ what: 'end', end });
    else if (status?.message !== undefined) turn.record({ what: 'text', text: toText(status.message.parts) });
    else turn.record({ what: 'other', detail: describeStatus(status) });
  }
}

function toText(parts: readonly Part[] = []): string {
  return parts.map(({ content }) => (content?.$case === 'text' ? content.value : '')).join('');
}

/** The names of the states by their numbers in the protocol. */
const STATES = ['unspecified', 'submitted', 'working', 'completed', 'failed', 'canceled', 'input-required', 'rejected'];
const ENDS: Readonly<Record<string, TurnEnd['kind']>> = {
  completed: 'completed',
  failed: 'error',
  canceled: 'cancelled',
  rejected: 'error',
  // It waits for another message, which no check sends.
  'input-required': 'completed',
  'auth-required': 'error',
};

function describeStatus(status: TaskStatus | undefined): string {
  return STATES[status?.state ?? 0] ?? 'auth-required';
}

/** How a task ended, if it did. */
function findTurnEnd(status: TaskStatus | undefined): TurnEnd | undefined {
  const state = describeStatus(status);
  const kind = ENDS[state];
  return kind && { kind, detail: `the state is ${state}` };
}
