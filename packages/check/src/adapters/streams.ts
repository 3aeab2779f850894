// Protocols in which a turn is one HTTP response, and that have no request to cancel: the AI SDK's chat and AG-UI.
import { randomUUID } from 'node:crypto';
import type { Adapter, Connection, Conversation, Features } from '../adapter.ts';
import { TurnLog } from '../turn-log.ts';
import { type AgentServerOptions, createServerAdapter, type ServerProtocol } from './agent-server.ts';
import { describeError } from './describe-error.ts';

/** A server of a protocol without a request to cancel. */
export interface StreamServerOptions extends AgentServerOptions {
  /**
   * Where to post a stop; `{id}` is replaced by the id of the conversation. Without it, a turn is cancelled by closing its
   * connection.
   */
  readonly stopUrl?: string | undefined;
}

/** A conversation as the official client of its protocol keeps it. */
export interface StreamClient {
  readonly id: string;
  /** Sends a prompt and records what comes. Resolves at the end of the response. */
  send(prompt: string, turn: TurnLog, signal: AbortSignal): Promise<void>;
}

/** Loads the official client. Returns a function that opens a conversation. */
type Load = (server: { url: string; headers: Record<string, string> }) => Promise<() => StreamClient>;

const CLOSES = 'a turn is cancelled by closing its connection, so its client sees nothing more of it';
const MAX_DETAIL = 200;

/** Creates the adapter of a protocol of streams. */
export function createStreamAdapter(protocol: 'chat' | 'ag-ui', load: Load, options: StreamServerOptions): Adapter {
  const { stopUrl, headers = {} } = options;
  const showsEnd = stopUrl !== undefined || CLOSES;
  const features: Features = {
    cancel: true,
    conversation: true,
    'one-piece': 'a cancel is another request, or a closed connection',
    outcome: showsEnd,
    calls: showsEnd,
    'cancel-by-id': showsEnd,
    'cancel-request': 'there is only one way to cancel',
    close: 'conversations are not closed',
    status: 'the protocol has no tasks',
  };
  const connect: ServerProtocol['connect'] = async (url, server) => {
    const open = await load({ url, headers: { ...headers } });
    const stop = stopUrl === undefined ? undefined : createStop(server.fill(stopUrl), headers);
    return createConnection(`the server at ${url}`, open, stop);
  };
  return createServerAdapter({ protocol, features, connect }, options);
}

/** Stops what runs in a conversation. Returns what the server said. */
type Stop = (id: string) => Promise<string>;

function createStop(stopUrl: string, given: Readonly<Record<string, string>>): Stop {
  const headers = { 'content-type': 'application/json', ...given };
  return async (id) => {
    const url = stopUrl.replaceAll('{id}', encodeURIComponent(id));
    const response = await fetch(url, { method: 'POST', headers, body: '{}' });
    await response.text();
    return `the stop was answered with ${response.status}`;
  };
}

function createConnection(agent: string, open: () => StreamClient, stop: Stop | undefined): Connection {
  const opened: StreamConversation[] = [];
  return {
    agent,
    // Each of these protocols asks by ending the response, and gets its answer with another request.
    answerQuestions() {},
    open() {
      const conversation = createConversation(open(), stop);
      opened.push(conversation);
      return Promise.resolve(conversation);
    },
    cancelUnknown: async () => (await stop?.(randomUUID())) ?? 'a closed connection names nothing',
    cancelTask: async (id) => (await stop?.(id)) ?? CLOSES,
    async [Symbol.asyncDispose]() {
      await Promise.all(opened.map((conversation) => conversation.leave()));
    },
  };
}

interface StreamConversation extends Conversation {
  /** Closes the connections of what runs, as the official clients do to stop. */
  leave(): Promise<void>;
}

function createConversation(client: StreamClient, stop: Stop | undefined): StreamConversation {
  const running = new Map<TurnLog, { readonly abort: AbortController; readonly done: Promise<void> }>();
  const leave = async (): Promise<void> => {
    const left = [...running];
    for (const [turn, { abort }] of left) {
      abort.abort();
      if (!turn.hasEnded) turn.end('gone', 'the client closed the connection');
    }
    await Promise.all(left.map(([, { done }]) => done));
  };
  return {
    start(prompt) {
      const turn = new TurnLog();
      turn.named.resolve(client.id);
      const abort = new AbortController();
      const done = client
        .send(prompt, turn, abort.signal)
        .catch((error: Error) => {
          if (abort.signal.aborted) return;
          const detail = describeError(error).slice(0, MAX_DETAIL);
          if (turn.hasEnded) turn.record({ what: 'other', detail });
          else turn.end('error', detail);
        })
        .finally(() => running.delete(turn));
      running.set(turn, { abort, done });
      return turn;
    },
    cancel: async () => void (await (stop === undefined ? leave() : stop(client.id))),
    leave,
  };
}
