import { randomUUID } from 'node:crypto';
import type { Part, StreamResponse, TaskStatus } from '@a2a-js/sdk';
import type { Client } from '@a2a-js/sdk/client';
import type { Connection, Conversation, Turn, TurnEnd } from '../../adapter.ts';
import { within } from '../../clock.ts';
import { TurnLog } from '../../turn-log.ts';
import { describeError } from '../describe-error.ts';

/** How long an agent may take to name a task before it is cancelled. */
const NAME_MS = 5_000;

/** A client of one A2A agent. */
export class A2aConnection implements Connection {
  readonly agent: string;
  readonly #client: Client;
  readonly #closing = new AbortController();

  constructor(client: Client, agent: string) {
    this.#client = client;
    this.agent = agent;
  }

  answerQuestions(): void {
    // A task that needs input ends its stream, and gets the input with another message.
  }

  open(): Promise<Conversation> {
    return Promise.resolve(new A2aConversation(this.#client, this.#closing.signal));
  }

  cancelUnknown(): Promise<string> {
    return this.cancelTask(randomUUID());
  }

  async status(id: string): Promise<TurnEnd['kind'] | 'running'> {
    const { status } = await this.#client.getTask({ tenant: '', id });
    return findTurnEnd(status)?.kind ?? 'running';
  }

  cancelTask(id: string): Promise<string> {
    return cancelTask(this.#client, id);
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    return Promise.resolve();
  }
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

type A2aTurn = TurnLog & { readonly id: () => Promise<string> };

/** Messages in one context. */
class A2aConversation implements Conversation {
  readonly #client: Client;
  readonly #closing: AbortSignal;
  #contextId = '';
  #last: A2aTurn | undefined;

  constructor(client: Client, closing: AbortSignal) {
    this.#client = client;
    this.#closing = closing;
  }

  start(prompt: string): Turn {
    const named = Promise.withResolvers<string>();
    named.promise.catch(() => {});
    const turn: A2aTurn = Object.assign(new TurnLog(), { id: () => named.promise });
    this.#last = turn;
    this.#read(prompt, turn, named.resolve).catch((error: Error) => {
      named.reject(error);
      turn.end(this.#closing.aborted ? 'gone' : 'error', describeError(error));
    });
    return turn;
  }

  async cancel(): Promise<void> {
    const turn = this.#last;
    if (turn === undefined) return;
    if (!(await within(NAME_MS, turn.id())))
      throw new Error('the agent did not report a task id, so the task cannot be cancelled');
    await cancelTask(this.#client, await turn.id());
  }

  async #read(prompt: string, turn: TurnLog, name: (id: string) => void): Promise<void> {
    const { SendMessageRequest } = await import('@a2a-js/sdk');
    const request = SendMessageRequest.fromJSON({
      message: {
        messageId: randomUUID(),
        role: 'ROLE_USER',
        parts: [{ text: prompt }],
        ...(this.#contextId !== '' && { contextId: this.#contextId }),
      },
    });
    for await (const { payload } of this.#client.sendMessageStream(request, { signal: this.#closing })) {
      if (payload?.$case === 'task') {
        name(payload.value.id);
        this.#contextId = payload.value.contextId;
      }
      recordPayload(turn, payload);
    }
    if (turn.observations.every(({ what }) => what !== 'end')) turn.end('gone', 'the stream ended before the task did');
  }
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
