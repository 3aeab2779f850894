import { isAbsolute } from 'node:path';
import {
  type AnyMessage,
  type ListSessionsRequest,
  type ListSessionsResponse,
  RequestError,
} from '@agentclientprotocol/sdk';
import { CancellationToken, type CancelReasonInit } from '@whoa/core';
import { waitUntilLevel } from '@whoa/core/embed';
import type { AcpOptions, McpServer, SessionSetting } from '../options.ts';
import type { Prompt } from '../prompt/prompt.ts';
import type { SessionRecord } from '../store/store.ts';
import type { FrameId } from '../wire/frame.ts';
import type { WireTap } from '../wire/wire.ts';
import type { ConnectionContext } from './connection-context.ts';
import { Session } from './session.ts';
import type { SessionRequest } from './session-request.ts';

/** How many sessions one connection may have open. */
const MAX_SESSIONS = 256;

interface Opening {
  readonly mcpServers: readonly McpServer[];
  /** Fires when the client no longer wants it. */
  readonly signal: AbortSignal;
}

/** A prompt with a reserved place. */
export interface ReservedPrompt {
  readonly session: Session;
  readonly prompt: Prompt;
}

/**
 * The sessions of one connection. Taps the wire: a prompt is reserved as soon as it is read, and a cancel reaches
 * exactly the prompts that were read before it, however the messages are dispatched afterwards.
 */
export class Sessions implements WireTap {
  readonly #sessions = new Map<string, Session>();
  readonly #prompts = new Map<FrameId, ReservedPrompt>();
  readonly #closing = new Set<Promise<void>>();
  readonly #settings: readonly SessionSetting[];
  #around: ConnectionContext | undefined;

  constructor(settings: readonly SessionSetting[]) {
    this.#settings = settings;
  }

  /** Called after `initialize`: only then is the client known. */
  attach(around: ConnectionContext): void {
    this.#around ??= around;
  }

  received(message: AnyMessage): boolean {
    if (!('method' in message)) return true;
    const params = (message.params ?? {}) as { sessionId?: unknown; requestId?: unknown };
    const isRequest = 'id' in message;
    if (message.method === 'session/prompt' && isRequest && isOwnable(message.id)) {
      const session = this.#find(params.sessionId);
      // Two prompts with the same id: their responses cannot be told apart, so don't wait for the older one.
      this.#prompts.get(message.id)?.prompt.answered();
      if (session !== undefined) this.#prompts.set(message.id, { session, prompt: session.reserve() });
    } else if (message.method === 'session/cancel' && !isRequest) {
      this.#find(params.sessionId)?.cancel(by('session/cancel'));
      // The SDK would print an error to stderr, which clients may not read.
      return typeof params.sessionId === 'string';
    } else if (message.method === '$/cancel_request' && !isRequest) {
      this.#prompts.get(params.requestId as FrameId)?.prompt.cancel(by('$/cancel_request'));
    }
    return true;
  }

  sent(message: AnyMessage): void {
    if ('method' in message || !('id' in message)) return;
    const reserved = this.#prompts.get(message.id);
    this.#prompts.delete(message.id);
    reserved?.prompt.answered();
  }

  /** Returns the reserved prompt. A prompt whose id cannot be cancelled is reserved only now. */
  claim(requestId: FrameId, sessionId: string): ReservedPrompt {
    const reserved = this.#prompts.get(requestId);
    if (reserved !== undefined) return reserved;
    const session = this.get(sessionId);
    return { session, prompt: session.reserve({ waitsForAnswer: false }) };
  }

  async create(request: SessionRequest, signal: AbortSignal): Promise<Session> {
    const { world, options } = this.#surroundings;
    checkDirectories(request, options);
    const now = Math.round(world.clock.now());
    const { cwd, additionalDirectories } = request;
    const settings = Object.fromEntries(this.#settings.map((one) => [one.id, getInitialOption(one)]));
    const id = world.createId();
    return this.#open(
      { id, cwd, additionalDirectories, settings, messages: [], createdAt: now, updatedAt: now },
      { mcpServers: request.mcpServers, signal },
    );
  }

  /** Resumes a session of this connection or of an earlier one. A running one keeps running. */
  async resume(id: string, request: SessionRequest, signal: AbortSignal): Promise<Session> {
    checkDirectories(request, this.#surroundings.options);
    const running = this.#sessions.get(id);
    if (running !== undefined) {
      running.reconnect(request.mcpServers);
      return running;
    }
    const record = await this.#surroundings.store.load(id);
    if (record === undefined) throw RequestError.sessionNotFound(id);
    // Check again: another request may have opened the same session meanwhile.
    const { cwd, additionalDirectories, mcpServers } = request;
    return this.#sessions.get(id) ?? this.#open({ ...record, cwd, additionalDirectories }, { mcpServers, signal });
  }

  get(id: string): Session {
    const session = this.#sessions.get(id);
    if (session === undefined) throw RequestError.sessionNotFound(id);
    return session;
  }

  /** Returns the response to a request for a list, which is the same in both versions. */
  async list({ cwd, cursor }: ListSessionsRequest): Promise<ListSessionsResponse> {
    try {
      const page = await this.#surroundings.store.list({ ...(cwd && { cwd }), ...(cursor && { cursor }) });
      const sessions = page.sessions.map(({ id, cwd: folder, additionalDirectories, title, updatedAt }) => ({
        sessionId: id,
        cwd: folder,
        additionalDirectories: [...additionalDirectories],
        updatedAt: new Date(updatedAt).toISOString(),
        ...(title !== undefined && { title }),
      }));
      return { sessions, ...(page.nextCursor !== undefined && { nextCursor: page.nextCursor }) };
    } catch (error) {
      if (error instanceof RangeError) throw RequestError.invalidParams(undefined, error.message);
      throw error;
    }
  }

  async close(id: string): Promise<void> {
    const session = this.get(id);
    // Prompts that were read before are reserved; later ones find no session.
    this.#sessions.delete(id);
    await this.#close(session, by('session/close'));
  }

  async remove(id: string): Promise<void> {
    if (this.#sessions.has(id)) await this.close(id);
    await this.#surroundings.store.remove(id);
  }

  /** Changes a setting, after checking that the setting and the value exist. */
  async choose(id: string, setting: { readonly id: string; readonly value: unknown }): Promise<Session> {
    const session = this.get(id);
    const known = this.#settings.find((one) => one.id === setting.id);
    const option = known?.options.find(({ value }) => value === setting.value);
    if (option === undefined) {
      const choices = known?.options.map(({ value }) => value) ?? this.#settings.map((one) => one.id);
      const message = choices.length === 0 ? 'this agent has no settings' : `choose one of ${choices.join(', ')}`;
      throw RequestError.invalidParams(undefined, message);
    }
    await session.choose(setting.id, option.value);
    return session;
  }

  /** Stops one call. Throws why not, with this data, if it cannot. */
  cancelCall({ sessionId, toolCallId }: { sessionId: string; toolCallId: string }, via: string, data?: object): void {
    const obstacle = this.get(sessionId).cancelCall(toolCallId, by(via));
    if (obstacle !== undefined) throw RequestError.invalidParams(data, obstacle);
  }

  /** Waits until everything has ended. The token has already been cancelled. */
  async closeAll(reason: CancelReasonInit): Promise<void> {
    await Promise.all([...this.#closing, ...[...this.#sessions.values()].map((session) => session.close(reason))]);
    this.#sessions.clear();
  }

  /** No response can be sent any more, so stop waiting for them. */
  abandonResponses(): void {
    for (const { prompt } of this.#prompts.values()) prompt.answered();
    this.#prompts.clear();
  }

  async #open(record: SessionRecord, { mcpServers, signal }: Opening): Promise<Session> {
    // A session opened after the end would never be closed.
    if (this.#surroundings.token.isCancelled)
      throw RequestError.requestCancelled(undefined, 'the agent is shutting down');
    if (this.#sessions.size >= MAX_SESSIONS) {
      throw RequestError.invalidRequest(undefined, `${MAX_SESSIONS} sessions are open; close one first`);
    }
    const session = new Session(record, mcpServers, this.#surroundings);
    this.#sessions.set(record.id, session);
    // An agent may wait for servers that never respond.
    const asked = CancellationToken.from(signal, { parent: this.#surroundings.token, name: 'open' });
    const opened = await waitUntilLevel(session.open(), asked, 'drain');
    asked[Symbol.dispose]();
    if (opened.by === 'value') return session;
    this.#sessions.delete(record.id);
    const closing = this.#close(session, { kind: 'shutdown' });
    if (opened.by === 'level') {
      // The caller no longer waits for the session that was being opened.
      closing.catch(this.#surroundings.onError);
      throw RequestError.requestCancelled();
    }
    await closing;
    const { error } = opened;
    throw loginNeeded(error) ?? RequestError.internalError(undefined, error instanceof Error ? error.message : '');
  }

  /** The end of the connection waits for this, even if the caller does not. */
  async #close(session: Session, reason: CancelReasonInit): Promise<void> {
    const closing = session.close(reason);
    this.#closing.add(closing);
    await closing.finally(() => this.#closing.delete(closing));
  }

  #find(sessionId: unknown): Session | undefined {
    return typeof sessionId === 'string' ? this.#sessions.get(sessionId) : undefined;
  }

  get #surroundings(): ConnectionContext {
    if (this.#around === undefined) throw RequestError.invalidRequest(undefined, 'send initialize first');
    return this.#around;
  }
}

/** The value of a setting before the user has chosen one. */
export function getInitialOption({ initial, options }: SessionSetting): string {
  return initial ?? options[0]?.value ?? '';
}

function by(via: string): CancelReasonInit {
  return { kind: 'user', via };
}

/** Only these ids come back unchanged in a response: `null` means "unknown" there, and v2 refuses fractions. */
function isOwnable(id: unknown): id is FrameId {
  return typeof id === 'string' || Number.isInteger(id);
}

function checkDirectories({ cwd, additionalDirectories }: SessionRequest, options: AcpOptions): void {
  for (const path of [cwd, ...additionalDirectories]) {
    if (!isAbsolute(path)) throw RequestError.invalidParams(undefined, `'${path}' is not an absolute path`);
  }
  if (additionalDirectories.length > 0 && options.additionalDirectories !== true) {
    throw RequestError.invalidParams(undefined, 'this agent works in one folder: additionalDirectories must be empty');
  }
}

function loginNeeded(error: unknown): RequestError | undefined {
  const isNeeded = error instanceof Error && 'code' in error && error.code === 'AUTH_REQUIRED';
  return isNeeded ? RequestError.authRequired(undefined, error.message) : undefined;
}
