// Protocols in which a turn is one HTTP response, and that have no request to cancel: the AI SDK's chat and AG-UI.
import { randomUUID } from 'node:crypto';
import type { Adapter, Connection, Conversation, Features, Turn } from '../adapter.ts';
import { TurnLog } from '../turn-log.ts';
import { type AgentServerOptions, createServerAdapter, type ServerProtocol } from './agent-server.ts';
import { describeError } from './describe-error.ts';

/** A server of a protocol without a request to cancel. */
export interface StreamServerOptions extends AgentServerOptions {
  /**
   * Where to post a stop; `{id}` is replaced by the id of the conversation. Without it, a turn is cancelled by closing its
   * connection.
   */
  readonly stopUrl?: string;
}

/** A conversation as the official client of its protocol keeps it. */
export interface StreamClient {
  readonly id: string;
  /** Sends a prompt and records what comes. Resolves at the end of the response. */
  send(prompt: string, reading: Reading): Promise<void>;
}

export interface Reading {
  readonly turn: TurnLog;
  readonly signal: AbortSignal;
}

interface StreamProtocol {
  readonly protocol: 'chat' | 'ag-ui';
  /** Loads the official client. Returns a function that opens a conversation. */
  readonly load: (server: { url: string; headers: Record<string, string> }) => Promise<() => StreamClient>;
}

const CLOSES = 'a turn is cancelled by closing its connection, so its client sees nothing more of it';
const MAX_DETAIL = 200;

/** Creates the adapter of a protocol of streams. */
export function createStreamAdapter({ protocol, load }: StreamProtocol, options: StreamServerOptions): Adapter {
  const { stopUrl, headers } = options;
  const server: ServerProtocol = {
    protocol,
    features: featuresOfStreams(options),
    async connect(url, at) {
      const open = await load({ url, headers: { ...headers } });
      const stop = stopUrl === undefined ? undefined : createStop(at.fill(stopUrl), options);
      return new StreamConnection(url, open, stop);
    },
  };
  return createServerAdapter(server, options);
}

function featuresOfStreams({ stopUrl }: StreamServerOptions): Features {
  const hasStop = stopUrl !== undefined;
  return {
    cancel: true,
    conversation: true,
    'one-piece': 'a cancel is another request, or a closed connection',
    outcome: hasStop || CLOSES,
    calls: hasStop || CLOSES,
    'cancel-by-id': hasStop || CLOSES,
    'cancel-request': 'there is only one way to cancel',
    close: 'conversations are not closed',
    status: 'the protocol has no tasks',
  };
}

/** Stops what runs in a conversation. Returns what the server said. */
type Stop = (id: string) => Promise<string>;

function createStop(stopUrl: string, { headers }: StreamServerOptions): Stop {
  return async (id) => {
    const response = await fetch(stopUrl.replaceAll('{id}', encodeURIComponent(id)), {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: '{}',
    });
    await response.text();
    return `the stop was answered with ${response.status}`;
  };
}

class StreamConnection implements Connection {
  readonly agent: string;
  readonly #open: () => StreamClient;
  readonly #stop: Stop | undefined;
  readonly #opened: StreamConversation[] = [];

  constructor(url: string, open: () => StreamClient, stop: Stop | undefined) {
    this.agent = `the server at ${url}`;
    this.#open = open;
    this.#stop = stop;
  }

  answerQuestions(): void {
    // Each of these protocols asks by ending the response, and gets its answer with another request.
  }

  open(): Promise<Conversation> {
    const conversation = new StreamConversation(this.#open(), this.#stop);
    this.#opened.push(conversation);
    return Promise.resolve(conversation);
  }

  async cancelUnknown(): Promise<string> {
    return (await this.#stop?.(randomUUID())) ?? 'a closed connection names nothing';
  }

  async cancelTask(id: string): Promise<string> {
    return (await this.#stop?.(id)) ?? CLOSES;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#opened.map((conversation) => conversation.leave()));
  }
}

class StreamConversation implements Conversation {
  readonly #client: StreamClient;
  readonly #stop: Stop | undefined;
  readonly #running = new Map<TurnLog, { readonly abort: AbortController; readonly done: Promise<void> }>();

  constructor(client: StreamClient, stop: Stop | undefined) {
    this.#client = client;
    this.#stop = stop;
  }

  start(prompt: string): Turn {
    const turn = new TurnLog();
    const abort = new AbortController();
    const done = this.#client
      .send(prompt, { turn, signal: abort.signal })
      .catch((error: Error) => {
        if (abort.signal.aborted) return;
        const detail = describeError(error).slice(0, MAX_DETAIL);
        if (hasEnded(turn)) turn.record({ what: 'other', detail });
        else turn.end('error', detail);
      })
      .finally(() => this.#running.delete(turn));
    this.#running.set(turn, { abort, done });
    return Object.assign(turn, { id: () => Promise.resolve(this.#client.id) });
  }

  async cancel(): Promise<void> {
    if (this.#stop === undefined) await this.leave();
    else await this.#stop(this.#client.id);
  }

  /** Closes the connections of what runs, as the official clients do to stop. */
  async leave(): Promise<void> {
    const running = [...this.#running];
    for (const [turn, { abort }] of running) {
      abort.abort();
      if (!hasEnded(turn)) turn.end('gone', 'the client closed the connection');
    }
    await Promise.all(running.map(([, { done }]) => done));
  }
}

function hasEnded({ observations }: TurnLog): boolean {
  return observations.some(({ what }) => what === 'end');
}
