import { DefaultChatTransport, type UIMessage, type UIMessageChunk } from 'ai';
import type { ApprovalReply, ChatStop, StopReceipt } from './chat-stop.ts';
import { keepReading, waitForEvent } from './keep-reading.ts';
import { type TabEvent, Tabs } from './tabs.ts';
import { findOpenQuestions } from './waiting-message.ts';

type Send<Message extends UIMessage> = Parameters<DefaultChatTransport<Message>['sendMessages']>[0];
type Resume<Message extends UIMessage> = Parameters<DefaultChatTransport<Message>['reconnectToStream']>[0];
type Chunks = ReadableStream<UIMessageChunk>;
type Open = (headers: Record<string, string>) => Promise<Chunks | null>;

interface KeptReading<Message extends UIMessage> {
  readonly reading: Reading;
  readonly options: Pick<Resume<Message>, 'chatId' | 'headers'> & { readonly abortSignal?: AbortSignal | undefined };
  readonly reopen: Open;
  readonly isContinued?: boolean;
}

/** A reply that this page reads. A resumed one has no name before its first chunk. */
interface Reading {
  runId?: string;
  messageId?: string;
  stopped?: Promise<StopReceipt>;
  /** Resolves when the stream has ended. */
  readonly over: PromiseWithResolvers<void>;
  /** Another tab reads it and passes it on. */
  isPassed?: boolean;
  /** The connection is lost and opened again. */
  isLost?: boolean;
}

/** The maximum time that the next message waits for the response to a stop. */
const POST_MS = 5_000;
/** The header with the last message that a page shows, so that it misses nothing that ended before it asked. */
const LAST_MESSAGE = 'whoa-last-message';

/**
 * A transport of `useChat` that can stop runs. `useChat` aborts the same signal when a user presses Stop, leaves the
 * page, opens another chat or mounts twice, so an abort only ends the reading. Only `stop` stops the run.
 */
export class StoppableChatTransport<Message extends UIMessage = UIMessage> extends DefaultChatTransport<Message> {
  readonly #tabs: Tabs<Message> = new Tabs();
  readonly #readings = new Map<string, Set<Reading>>();
  readonly #stopping = new Map<string, Promise<unknown>>();
  readonly #listeners = new Set<() => void>();
  /** The last message that the page has of each chat, and whether it is complete. */
  readonly #last = new Map<string, { readonly id: string; readonly isWhole: boolean }>();

  /**
   * Stops the replies of a chat that this page reads, or the message whose calls wait. Call it before the SDK's `stop`,
   * which ends the reading. If a stop could not be sent, the reply can be stopped again.
   */
  stop(chatId: string, options: ChatStop = {}): Promise<StopReceipt<Message>> {
    const { waiting, ...wanted } = options;
    const { scope = 'foreground', reason } = wanted;
    const readings = scope === 'background' ? [] : this.#getReadings(chatId);
    const isStopping = readings.every(({ stopped }) => stopped !== undefined);
    const stops = readings.map((reading) => {
      const { runId, messageId } = reading;
      const onReceipt = (receipt: StopReceipt<Message>): StopReceipt<Message> => {
        if (receipt.result === 'unanswered' || receipt.rolledBack === false) delete reading.stopped;
        return receipt;
      };
      return (reading.stopped ??= this.#sendStop(chatId, { ...wanted, runId, messageId }).then(onReceipt)) as Promise<
        StopReceipt<Message>
      >;
    });
    if (stops.length === 0 && scope !== 'background' && waiting !== undefined)
      stops.push(this.#sendStop(chatId, { ...wanted, messageId: waiting }));
    // A page that reads no reply must not stop one: it may be another page's.
    if (scope !== 'foreground' && isStopping) stops.push(this.#sendStop(chatId, { scope: 'background', reason }));
    const all = Promise.all(stops).then((receipts) => {
      if (this.#stopping.get(chatId) === all) this.#stopping.delete(chatId);
      const receipt = Object.assign({ result: 'idle' }, ...receipts.toReversed()) as StopReceipt<Message>;
      if (receipt.message) this.#tabs.post({ type: 'closed', chatId, message: receipt.message });
      return receipt;
    });
    if (stops.length > 0) this.#stopping.set(chatId, all);
    if (stops.length > 0 && scope !== 'background') this.#tabs.post({ type: 'stopping', chatId, reason });
    return all;
  }

  /** Answers the question of a `tool-approval-request`. Resolves with whether the answer was accepted. */
  async approve(chatId: string, answer: ApprovalReply): Promise<boolean> {
    return (await this.#post(`${encodeURIComponent(chatId)}/approve`, answer)).ok;
  }

  /**
   * Resolves when someone has answered what a message waits for, or closed it, in another page or program: with `true`
   * if `reconnectToStream` then reads the rest. Lost connections are opened again until the signal fires.
   */
  async waitForAnswer(chatId: string, message: Message, signal: AbortSignal): Promise<boolean> {
    const questions = findOpenQuestions(message);
    if (questions.length === 0) return false;
    const query = new URLSearchParams({ messageId: message.id });
    for (const id of questions) query.append('question', id);
    const path = `${encodeURIComponent(chatId)}/answered?${query}`;
    const isAnswered = await waitForEvent(() => this.#request(path, { signal }), signal);
    // The message has changed since its stream ended.
    if (isAnswered) this.#last.set(chatId, { id: message.id, isWhole: false });
    return isAnswered;
  }

  /** Resolves when the replies of a chat that this page reads have ended; immediately if there are none. */
  async waitForEnd(chatId: string): Promise<void> {
    const started = this.#getReadings(chatId).filter(({ messageId }) => messageId !== undefined);
    for (const { over } of started) await over.promise;
  }

  /** Whether a reply of a chat has lost its connection. It is opened again by itself, and a stop still works. */
  isReconnecting(chatId: string): boolean {
    return this.#getReadings(chatId).some(({ isLost }) => isLost);
  }

  /** Calls a listener when `isReconnecting` may have changed, until the returned function is called. */
  onConnection(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * Calls a listener with what other tabs of this browser do in a chat, until the returned function is called. After
   * something was said, `reconnectToStream` reads the reply.
   */
  onOtherTab(chatId: string, listener: (event: TabEvent<Message>) => void): () => void {
    return this.#tabs.listen(this.api, chatId, listener);
  }

  /** Whether another tab reads the reply that this one shows. That tab runs its tools. */
  isPassedOn(chatId: string): boolean {
    return this.#getReadings(chatId).some(({ isPassed }) => isPassed);
  }

  /** Sets the last message that a newly opened page shows. A reply that ended in between is streamed to it. */
  setLastMessage(chatId: string, messageId: string | undefined): void {
    if (messageId !== undefined && !this.#last.has(chatId)) this.#last.set(chatId, { id: messageId, isWhole: true });
  }

  /**
   * Sends the last message, and returns the stream of its reply. The page names the run, so that it can be stopped before
   * the first byte arrives.
   */
  override async sendMessages(options: Send<Message>): Promise<ReadableStream<UIMessageChunk>> {
    const { chatId, abortSignal, metadata, messageId } = options;
    // Wait for the stop: if the server got it later, it would stop this message.
    await this.#stopping.get(chatId);
    const runId = crypto.randomUUID();
    const named = options.messages.find(({ id, role }) => id === messageId && role === 'assistant');
    const message = named ?? options.messages.at(-1)!;
    const isContinued = message.role === 'assistant' && options.trigger === 'submit-message';
    this.#last.set(chatId, { id: message.id, isWhole: !isContinued });
    const reading: Reading = { runId, over: Promise.withResolvers() };
    // The server has the others, and with their files they may be too large.
    const messages = options.messages.filter(({ id }, i, { length }) => i === length - 1 || id === messageId);
    const body = { ...options.body, runId };
    const resumed = { chatId, metadata, ...(abortSignal && { abortSignal }) };
    const reopen: Open = (headers) => super.reconnectToStream({ ...resumed, headers });
    const stream = await this.#read(options, reading, async () => {
      const release = await this.#tabs.say(chatId, runId, { ids: options.messages.map(({ id }) => id), message });
      reading.over.promise.then(release, release);
      const first = await super.sendMessages({ ...options, messages, body });
      return this.#keepReading(first, { reading, options, reopen, isContinued });
    });
    return stream!;
  }

  /** Resumes the stream of a reply that is still running, if there is one. */
  override async reconnectToStream(options: Resume<Message>): Promise<ReadableStream<UIMessageChunk> | null> {
    const { chatId } = options;
    const reopen: Open = (headers) => super.reconnectToStream({ ...options, headers });
    await this.#stopping.get(chatId);
    // Now the server names the run.
    for (const { over } of this.#getReadings(chatId)) over.resolve();
    this.#readings.delete(chatId);
    const passed = this.#tabs.take(chatId);
    if (passed) this.#last.set(chatId, { id: passed.message.id, isWhole: passed.message.role === 'user' });
    const reading: Reading = { over: Promise.withResolvers(), isPassed: passed !== undefined };
    return this.#read(options, reading, async () => {
      const first = passed?.stream ?? (await reopen(this.#toHeaders(options)));
      return first && this.#keepReading(first, { reading, options, reopen });
    });
  }

  #getReadings(chatId: string): readonly Reading[] {
    return [...(this.#readings.get(chatId) ?? [])];
  }

  #toHeaders({ chatId, headers }: Pick<Resume<Message>, 'chatId' | 'headers'>): Record<string, string> {
    const last = this.#last.get(chatId);
    return {
      ...Object.fromEntries(new Headers(headers)),
      ...(last && { [LAST_MESSAGE]: `${encodeURIComponent(last.id)}${last.isWhole ? '' : ';partial'}` }),
    };
  }

  #keepReading(first: Chunks, { reading, options, reopen, isContinued }: KeptReading<Message>): Chunks {
    return keepReading(first, {
      isContinued,
      signal: options.abortSignal,
      reopen: () => reopen(this.#toHeaders(options)),
      onConnection: (isLost) => {
        reading.isLost = isLost;
        for (const listener of this.#listeners) listener();
      },
    });
  }

  async #read(
    { chatId, abortSignal }: { chatId: string; abortSignal?: AbortSignal | undefined },
    reading: Reading,
    open: () => Promise<Chunks | null>,
  ): Promise<Chunks | null> {
    const readings = this.#readings.get(chatId) ?? new Set();
    this.#readings.set(chatId, readings.add(reading));
    const forget = (): void => {
      readings.delete(reading);
      reading.over.resolve();
    };
    abortSignal?.addEventListener('abort', forget, { once: true });
    try {
      const stream = await open();
      if (stream === null) forget();
      return stream?.pipeThrough(this.#watch(chatId, reading, forget)) ?? null;
    } catch (error) {
      // A TypeError means that the network failed: the run may still be alive, and can be stopped.
      if (!(error instanceof TypeError)) forget();
      throw error;
    }
  }

  /** Reads the name of a reply from its chunks, and ends a stopped reply: the SDK ignores `abort` chunks. */
  #watch(chatId: string, reading: Reading, forget: () => void): TransformStream<UIMessageChunk, UIMessageChunk> {
    let reason: string | undefined;
    return new TransformStream({
      transform: (chunk, controller) => {
        const isEnd = chunk.type === 'finish' || chunk.type === 'abort';
        if (chunk.type === 'start' && chunk.messageId !== undefined) reading.messageId = chunk.messageId;
        if (chunk.type === 'abort') reason = chunk.reason ?? 'stopped';
        if (reading.messageId !== undefined) this.#last.set(chatId, { id: reading.messageId, isWhole: isEnd });
        if (reading.runId !== undefined) this.#tabs.post({ type: 'chunk', chatId, runId: reading.runId, chunk });
        if (isEnd) forget();
        controller.enqueue(chunk);
      },
      flush() {
        forget();
        if (reason !== undefined) throw new DOMException(reason, 'AbortError');
      },
    });
  }

  /** Never rejects. */
  async #sendStop(chatId: string, stop: object): Promise<StopReceipt<Message>> {
    try {
      const response = await this.#post(`${encodeURIComponent(chatId)}/stop`, stop);
      const isAnswer = response.ok || response.status === 409;
      return isAnswer ? ((await response.json()) as StopReceipt<Message>) : { result: 'unanswered' };
    } catch {
      return { result: 'unanswered' };
    }
  }

  #post(path: string, body: object): Promise<Response> {
    return this.#request(path, {
      method: 'POST',
      // Sends the request even if the page is closed right after the click, and before others that wait.
      keepalive: true,
      ...({ priority: 'high' } as object),
      signal: AbortSignal.timeout(POST_MS),
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  }

  async #request(path: string, init: RequestInit): Promise<Response> {
    return (this.fetch ?? globalThis.fetch)(`${this.api}/${path}`, {
      ...init,
      headers: Object.fromEntries([...new Headers(await resolve(this.headers)), ...new Headers(init.headers)]),
      credentials: (await resolve(this.credentials)) ?? 'same-origin',
    });
  }
}

async function resolve<T>(value: T | PromiseLike<T> | (() => T | PromiseLike<T>) | undefined): Promise<T | undefined> {
  return typeof value === 'function' ? (value as () => T | PromiseLike<T>)() : value;
}
