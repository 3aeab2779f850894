import type { Clock } from '@whoa/core/embed';
import type { TaskRef } from '@whoa/tasks';
import type { Access } from '../access/access.ts';
import type { Principal, Right } from '../access/principal.ts';
import { HttpError, responseTo } from '../api/http/http-error.ts';
import type { Chat } from '../chat/chat.ts';
import { answerQuestion, errorOf, LAST_MESSAGE, messageOf, replyFor, stopChat } from '../chat/chat-request.ts';
import { type ClientFrame, readFrame, requestIdOf, type ServerFrame } from './frames.ts';

/** The required part of a WebSocket. Standard ones (browsers, Deno, Bun, Workers) and those of `ws` have it. */
export interface SocketLike {
  readonly readyState: number;
  /** Without it, slow readers cannot be detected. */
  readonly bufferedAmount?: number;
  send(data: string): void;
  close(code?: number, reason?: string): void;
  addEventListener(type: 'message', listener: (event: { readonly data: unknown }) => void): void;
  addEventListener(type: 'close' | 'error', listener: () => void): void;
}

export interface SessionParts {
  readonly chat: Chat;
  readonly access: Access;
  /** The request of the handshake, which identifies the sender of the frames. */
  readonly request: Request;
  readonly onError: (error: unknown) => void;
  readonly clock: Clock;
}

const OPEN = 1;
/** The maximum size of a frame. */
export const MAX_FRAME_BYTES: number = 4 * 1024 * 1024;
/** The maximum number of replies that are read at once over one socket. */
const MAX_READINGS = 32;
/** The maximum number of frames of one socket that are processed at once. */
const MAX_FRAMES = 256;
/** While this much is buffered, nothing more is read for the socket. */
const BUFFER_BYTES = 1024 * 1024;
/** The maximum size of buffered responses that the client does not read. */
const MAX_BUFFER_BYTES = 4 * BUFFER_BYTES;
/** A client that reads nothing for this long is disconnected; it can reconnect and resume. */
const SLOW_MS = 30_000;
const LOOK_MS = 20;
/** Proxies close a connection that is silent for longer. */
const HEARTBEAT_MS = 15_000;

/** Why a socket is closed: codes of the WebSocket protocol. */
const TEXT_ONLY = 1003;
const MISUSED = 1008;
const TOO_LARGE = 1009;
const TOO_SLOW = 1013;

/** One socket of a page. When it closes, or the SDK aborts a request, only the reading ends. */
export class SocketSession {
  readonly #socket: SocketLike;
  readonly #parts: SessionParts;
  readonly #readings = new Map<string, AbortController>();
  /** Changes to a chat are made in the order of their frames. */
  readonly #last = new Map<string, Promise<unknown>>();
  readonly #working = new Set<Promise<void>>();
  readonly #closed = Promise.withResolvers<void>();
  #heartbeat: Disposable | undefined;
  #isClosed = false;

  constructor(socket: SocketLike, parts: SessionParts) {
    this.#socket = socket;
    this.#parts = parts;
    socket.addEventListener('message', ({ data }) => this.#receive(data));
    socket.addEventListener('close', () => this.#end());
    socket.addEventListener('error', () => this.#end());
    this.#beat();
  }

  /** Resolves when the socket is closed and nothing is read for it any more. */
  get ended(): Promise<void> {
    return this.#closed.promise.then(async () => {
      await Promise.all(this.#working);
    });
  }

  close(code: number, reason: string): void {
    if (this.#isClosed) return;
    this.#end();
    try {
      this.#socket.close(code, reason);
    } catch {
      // It is closed already.
    }
  }

  #end(): void {
    this.#isClosed = true;
    this.#heartbeat?.[Symbol.dispose]();
    for (const reading of this.#readings.values()) reading.abort();
    this.#closed.resolve();
  }

  #receive(data: unknown): void {
    if (this.#isClosed) return;
    if (typeof data !== 'string') this.close(TEXT_ONLY, 'Send text');
    else if (data.length > MAX_FRAME_BYTES) this.close(TOO_LARGE, 'The frame is too large');
    else if (this.#working.size >= MAX_FRAMES) this.close(MISUSED, 'Too many frames at once');
    else {
      const work = this.#answer(parsed(data)).finally(() => this.#working.delete(work));
      this.#working.add(work);
    }
  }

  async #answer(value: unknown): Promise<void> {
    const requestId = requestIdOf(value);
    try {
      await this.#serve(readFrame(value));
    } catch (error) {
      const { code, message } = await errorOf(responseTo(error, this.#parts.onError));
      this.#send({ type: 'error', requestId, code, errorText: message });
    }
  }

  async #serve(frame: ClientFrame): Promise<void> {
    const { chat, access } = this.#parts;
    const { requestId } = frame;
    switch (frame.type) {
      case 'abort':
        this.#readings.get(requestId)?.abort();
        break;
      case 'send':
        await this.#read(frame, 'start', (who) => chat.send(who, messageOf(frame.send)));
        break;
      case 'resume': {
        const last = frame.headers[LAST_MESSAGE];
        await this.#read(frame, 'read', (who) => replyFor(who, { chatId: frame.id, last }, chat));
        break;
      }
      case 'stop': {
        const stop = { ...frame.stop, chatId: frame.id };
        const receipt = await this.#inOrder(frame.id, async () =>
          stopChat(await this.#admit('cancel'), stop, { chat, access, via: 'websocket' }),
        );
        this.#send({ type: 'receipt', requestId, receipt });
        break;
      }
      case 'approve': {
        const request = { ...frame.approve, chatId: frame.id };
        const answer = await answerQuestion(await this.#admit('approve'), request, { chat, access });
        this.#send({ type: 'receipt', requestId, receipt: { answer } });
      }
    }
  }

  /** Checks every frame: a user who has been signed out since must not send more. */
  async #admit(right: Right): Promise<Principal> {
    const { access, request } = this.#parts;
    const who = await access.admit(request, right);
    if (who instanceof Response) throw await errorOf(who);
    return who;
  }

  async #inOrder<T>(chatId: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(chatId);
    const result = before === undefined ? work() : before.then(work);
    const settled = result.catch(() => {});
    this.#last.set(chatId, settled);
    try {
      return await result;
    } finally {
      if (this.#last.get(chatId) === settled) this.#last.delete(chatId);
    }
  }

  /** Sends a reply from its start, until it ends or the client stops reading. */
  async #read(
    { requestId, id }: { readonly requestId: string; readonly id: string },
    right: Right,
    find: (who: Principal) => Promise<TaskRef | undefined>,
  ): Promise<void> {
    if (this.#readings.has(requestId))
      throw new HttpError(400, { code: 'invalid', message: 'requestId: already in use' });
    if (this.#readings.size >= MAX_READINGS) {
      const message = `this socket already reads ${MAX_READINGS} replies; abort one first`;
      throw new HttpError(429, { code: 'too-many-streams', message });
    }
    const reading = new AbortController();
    this.#readings.set(requestId, reading);
    try {
      const [who, ref] = await this.#inOrder(id, async () => {
        const admitted = await this.#admit(right);
        return [admitted, await find(admitted)] as const;
      });
      if (ref === undefined) this.#send({ type: 'no-active', requestId });
      else await this.#stream(requestId, { who, ref }, reading.signal);
    } finally {
      this.#readings.delete(requestId);
    }
  }

  async #stream(
    requestId: string,
    { who, ref }: { readonly who: Principal; readonly ref: TaskRef },
    signal: AbortSignal,
  ): Promise<void> {
    if (signal.aborted) return;
    const slot = this.#parts.access.openStream(who);
    if (slot instanceof Response) throw await errorOf(slot);
    try {
      this.#send({ type: 'start', requestId });
      let sequence = 0;
      for await (const chunk of this.#parts.chat.stream(ref, signal)) {
        await this.#drained(signal);
        if (signal.aborted) return;
        this.#send({ type: 'chunk', requestId, sequence: sequence++, chunk });
      }
      if (!signal.aborted) this.#send({ type: 'end', requestId });
    } finally {
      slot[Symbol.dispose]();
    }
  }

  /** Waits for the reader by polling: a socket has no event for a drained buffer. */
  async #drained(signal: AbortSignal): Promise<void> {
    const { clock } = this.#parts;
    let lowest = this.#buffered;
    for (let since = clock.now(); this.#buffered > BUFFER_BYTES && !signal.aborted; ) {
      if (this.#buffered < lowest) [lowest, since] = [this.#buffered, clock.now()];
      if (clock.now() - since > SLOW_MS) this.close(TOO_SLOW, 'Nothing was read for too long; resume');
      await new Promise<void>((resolve) => clock.setTimer(LOOK_MS, resolve));
    }
  }

  get #buffered(): number {
    return this.#socket.bufferedAmount ?? 0;
  }

  #send(frame: ServerFrame): void {
    if (this.#isClosed || this.#socket.readyState !== OPEN) return;
    try {
      if (this.#buffered > MAX_BUFFER_BYTES) throw new RangeError('The buffer is full');
      this.#socket.send(JSON.stringify(frame));
    } catch {
      this.close(TOO_SLOW, 'Nothing is read; resume');
    }
  }

  #beat(): void {
    const beat = (): void => {
      // Skip the ping if the client does not read: they would pile up.
      if (this.#buffered === 0) this.#send({ type: 'ping', requestId: '' });
      this.#beat();
    };
    if (!this.#isClosed) this.#heartbeat = this.#parts.clock.setTimer(HEARTBEAT_MS, beat, { keepAlive: false });
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
