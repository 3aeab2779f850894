import type { Readable, Writable } from 'node:stream';
import type { AnyMessage, AnyRequest } from '@agentclientprotocol/sdk';
import { type Agent, CancellationToken, type CancelReasonInit } from '@whoa/core';
import { systemWorld, waitUntilLevel } from '@whoa/core/embed';
import type { Arrange } from './connect.ts';
import type { AcpOptions } from './options.ts';
import type { ConnectionContext } from './session/connection-context.ts';
import type { Sessions } from './session/sessions.ts';
import { createMemorySessions } from './store/memory.ts';
import { introduceV1 } from './v1/agent-info.ts';
import { takeStandardOutput } from './wire/stdout.ts';
import { Wire } from './wire/wire.ts';

const FLUSH_MS = 200;
/** While ending, no one waits for a client that reads nothing for this long. */
const STUCK_MS = 1_000;

export interface ServeOptions {
  /**
   * Default to the process's standard streams. Standard output is then reserved for the protocol: other output goes to
   * standard error.
   */
  readonly input?: Readable | undefined;
  readonly output?: Writable | undefined;
  /**
   * Ends everything: prompts are cancelled and get their responses, then the connection is closed. Cancel it on
   * SIGTERM.
   */
  readonly token?: CancellationToken | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Why a connection ended. */
export interface AcpCloseInfo {
  readonly by: 'client' | 'agent' | 'error';
  readonly error?: Error;
}

/** A connection to a client. */
export interface AcpConnection extends AsyncDisposable {
  /** Resolves when the connection is over and nothing of it is running. It never rejects. */
  readonly closed: Promise<AcpCloseInfo>;
  /** Cancels all prompts and closes the connection. */
  close(reason?: CancelReasonInit): Promise<AcpCloseInfo>;
}

/**
 * Serves an agent to one client, in the client's version of the Agent Client Protocol.
 *
 * Pass options with `createAgent` instead of an agent to create one for each session: it gets the folder and the MCP
 * servers, and can ask for permission. An agent that is passed directly gets none of these.
 *
 * @returns The connection. It ends when the client disconnects; dispose it to end it from this side.
 *
 * @example
 * ```ts
 * import { serveAcp } from '@whoa/acp';
 *
 * await using connection = serveAcp(agent);
 * await connection.closed;
 * ```
 */
export function serveAcp(agent: Agent | AcpOptions, options: ServeOptions = {}): AcpConnection {
  return connect('run' in agent ? { createAgent: () => agent } : agent, options);
}

/** Like `serveAcp`, with the methods reordered. */
export function connect(
  options: AcpOptions,
  { input = process.stdin, output: given, token: parent, signal }: ServeOptions,
  arrange: Arrange = (methods) => methods,
): AcpConnection {
  const {
    world = systemWorld,
    store = createMemorySessions(),
    stopMode: mode = 'now',
    flushIntervalMs = FLUSH_MS,
  } = options;
  const onError = options.onError ?? warn;
  const tokenOptions = { parent, name: 'acp', clock: world.clock };
  const token = signal ? CancellationToken.from(signal, tokenOptions) : new CancellationToken(tokenOptions);
  const gone = new CancellationToken({ name: 'gone', clock: world.clock });
  const { output, restore } = given ? { output: given, restore: () => {} } : takeStandardOutput();
  const wire = new Wire({ input, output, onError });
  const parts: Parts = { wire, token, gone, sessions: undefined };
  initialize(parts, { options, store, mode, flushIntervalMs, onError, world, token, gone }, arrange).catch(
    (error: unknown) => wire.close(error instanceof Error ? error : new Error(String(error))),
  );
  const closed = runConnection(parts).finally(restore);
  const close = (reason: CancelReasonInit = { kind: 'shutdown' }): Promise<AcpCloseInfo> => {
    token.cancel(reason, { mode });
    return closed;
  };
  return { closed, close, [Symbol.asyncDispose]: async () => void (await close()) };
}

interface Parts {
  readonly wire: Wire;
  readonly token: CancellationToken;
  readonly gone: CancellationToken;
  /** Undefined until the client has sent its first message. */
  sessions: Sessions | undefined;
}

/** Responds to `initialize` immediately, because an editor waits for that, and then loads everything else. */
async function initialize(parts: Parts, around: Omit<ConnectionContext, 'client'>, arrange: Arrange): Promise<void> {
  const { wire, token } = parts;
  const first = await wire.first;
  if (first === undefined) return;
  const isV1 = isHelloV1(first);
  // Loading blocks the process, so the response must be sent first.
  if (isV1) await wire.answerFirst(first, introduceV1(around.options));
  // Today's editors use v1, and loading the other half of the library would double the time.
  const [{ connectProtocol }, router] = await Promise.all([
    import('./connect.ts'),
    isV1 ? undefined : import('./v2/app.ts'),
  ]);
  if (wire.isOver || token.isCancelled) return;
  parts.sessions = connectProtocol(wire, { around, arrange, connectByVersion: router?.connectByVersion });
}

/** Only the version matters: the library accepts the rest of the message whatever it holds. */
function isHelloV1(message: AnyMessage): message is AnyRequest {
  if (!('method' in message) || !('id' in message) || message.method !== 'initialize') return false;
  return (message.params as { protocolVersion?: unknown } | undefined)?.protocolVersion === 1;
}

/**
 * Waits until one side ends the connection. Then stops everything, sends what the client still reads, and releases
 * everything.
 */
async function runConnection(parts: Parts): Promise<AcpCloseInfo> {
  const { wire, token, gone } = parts;
  const ended = wire.over.then(({ error }) => {
    // Cancel before closing: running work must get the reason.
    token.cancel({ kind: 'disconnect', message: 'the client has gone', via: 'acp' }, { mode: 'now' });
    gone.cancel({ kind: 'disconnect' }, { mode: 'kill' });
    parts.sessions?.abandonResponses();
    return error;
  });
  const first = await waitUntilLevel(ended, token, 'drain');
  const isClosedByAgent = first.by === 'level' && !gone.isCancelled;
  const stuckTimer = wire.closeWhenStuck(STUCK_MS, token.clock);
  await parts.sessions?.closeAll({ kind: 'shutdown' });
  // The caller may end the process as soon as this resolves.
  await wire.drained();
  stuckTimer[Symbol.dispose]();
  wire.close();
  const error = await ended;
  token[Symbol.dispose]();
  gone[Symbol.dispose]();
  if (error !== undefined) return { by: 'error', error };
  return { by: isClosedByAgent ? 'agent' : 'client' };
}

function warn(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : new Error(String(error)));
}
