// Protocols in which a turn is one HTTP response, and that have no request to cancel: the AI SDK's chat and AG-UI.
import { randomUUID } from 'node:crypto';
import type { Adapter, AgentProcess, Connection, Conversation, Features, Turn } from '../adapter.ts';
import type { Stage } from '../stage/stage.ts';
import { TurnLog } from '../turn-log.ts';
import { type AgentServer, type AgentServerOptions, AgentServers } from './agent-server.ts';
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
const MAX_SAID = 200;

/** Creates the adapter of a protocol of streams. */
export function createStreamAdapter({ protocol, load }: StreamProtocol, options: StreamServerOptions): Adapter {
  const servers = new AgentServers(options);
  const { first, second } = servers;
  const connect = async (server: AgentServer, stage: Stage, owned?: AsyncDisposable): Promise<Connection> => {
    const url = await server.reach(stage);
    const open = await load({ url, headers: { ...options.headers } });
    const stop = options.stopUrl === undefined ? undefined : createStop(server.fill(options.stopUrl), options);
    return new StreamConnection({ url, open, stop, process: server.process, owned });
  };
  return {
    protocol,
    features: { ...featuresOfStreams(options), ...servers.features },
    connect: (stage) => connect(first, stage),
    // It runs only while it is needed: it would take over what the first one leaves when that one is killed.
    ...(second !== undefined && { connectSecond: (stage: Stage) => connect(second, stage, second) }),
    ...(options.command !== undefined && { restart: () => first.restart() }),
    [Symbol.asyncDispose]: () => servers[Symbol.asyncDispose](),
  };
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

interface Parts {
  readonly url: string;
  readonly open: () => StreamClient;
  readonly stop: Stop | undefined;
  readonly process: AgentProcess | undefined;
  readonly owned: AsyncDisposable | undefined;
}

class StreamConnection implements Connection {
  readonly agent: string;
  readonly process?: AgentProcess;
  readonly #parts: Parts;
  readonly #opened: StreamConversation[] = [];

  constructor(parts: Parts) {
    this.#parts = parts;
    this.agent = `the server at ${parts.url}`;
    if (parts.process !== undefined) this.process = parts.process;
  }

  answerQuestions(): void {
    // Each of these protocols asks by ending the response, and gets its answer with another request.
  }

  open(): Promise<Conversation> {
    const conversation = new StreamConversation(this.#parts.open(), this.#parts.stop);
    this.#opened.push(conversation);
    return Promise.resolve(conversation);
  }

  async cancelUnknown(): Promise<string> {
    return (await this.#parts.stop?.(randomUUID())) ?? 'a closed connection names nothing';
  }

  async cancelTask(id: string): Promise<string> {
    return (await this.#parts.stop?.(id)) ?? CLOSES;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#opened.map((conversation) => conversation.leave()));
    await this.#parts.owned?.[Symbol.asyncDispose]();
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
        const said = describeError(error).slice(0, MAX_SAID);
        if (hasEnded(turn)) turn.record({ what: 'other', said });
        else turn.end('error', said);
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

function hasEnded({ seen }: TurnLog): boolean {
  return seen.some(({ what }) => what === 'end');
}
