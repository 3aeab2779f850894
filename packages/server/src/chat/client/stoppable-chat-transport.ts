import type { UIMessage, UIMessageChunk } from 'ai';
import type { ChatStop, StopReceipt } from './chat-stop.ts';
import { isStop } from './command.ts';
import { RESPONSE_MS } from './commands.ts';
import type { Resume, Send } from './http-transport.ts';
import { keepReading, reconnect } from './keep-reading.ts';
import { type Sent, withPending } from './pending-messages.ts';
import { type Reading, watch } from './readings.ts';
import { WatchingTransport } from './watching-transport.ts';

type Chunks = ReadableStream<UIMessageChunk>;
type Open = (headers: Record<string, string>) => Promise<Chunks | null>;

interface KeptReading<Message extends UIMessage> {
  readonly reading: Reading;
  readonly options: Pick<Resume<Message>, 'chatId' | 'headers'> & { readonly abortSignal?: AbortSignal | undefined };
  readonly reopen: Open;
}

/** The header with the last message that a page shows, so that it misses nothing that ended before it asked. */
const LAST_MESSAGE = 'whoa-last-message';

/**
 * A transport of `useChat` that can stop runs. `useChat` aborts the same signal when a user presses Stop, leaves the
 * page, opens another chat or mounts twice, so an abort only ends the reading. Only `stop` stops the run. What a user
 * does is sent until the server has acknowledged or refused it, also after a reload.
 */
export class StoppableChatTransport<Message extends UIMessage = UIMessage> extends WatchingTransport<Message> {
  /**
   * Stops the replies of a chat that this page reads or has asked for, or the message whose calls wait. Call it before the
   * SDK's `stop`, which ends the reading. Resolves when the server has answered, however long that takes.
   */
  async stop(chatId: string, options: ChatStop = {}): Promise<StopReceipt<Message>> {
    const { waiting, ...wanted } = options;
    const { scope = 'foreground', reason } = wanted;
    const isForeground = scope !== 'background';
    const readings = isForeground ? this.readings.of(chatId) : [];
    const isStopping = readings.every(({ stopped }) => stopped !== undefined);
    const stops = readings.map((reading) => (reading.stopped ??= this.#stopReading(chatId, reading, wanted)));
    const read = new Set(readings.map(({ runId }) => runId));
    for (const { id, kind, body } of isForeground ? this.commands.outbox.commands(chatId) : []) {
      if (read.has(id) || isStop({ kind })) continue;
      const { messageId } = body as Sent<Message>;
      stops.push(this.commands.stop(chatId, { ...wanted, runId: id, ...(kind !== 'regenerate' && { messageId }) }));
    }
    // A turn that is removed after its user was asked has ended. A reply that others asked for may not be read yet.
    const ended = wanted.rollback === 'with-effects' ? this.last.get(chatId)?.id : undefined;
    const messageId = waiting ?? ended ?? this.findUnread(chatId);
    if (stops.length === 0 && isForeground && messageId !== undefined)
      stops.push(this.commands.stop(chatId, { ...wanted, messageId }));
    if (scope !== 'foreground' && isStopping) stops.push(this.commands.stop(chatId, { scope: 'background', reason }));
    if (stops.length > 0 && isForeground) this.tabs.post({ type: 'stopping', chatId, reason });
    const receipts = await Promise.all(stops);
    return Object.assign({ result: 'idle' }, ...receipts.toReversed()) as StopReceipt<Message>;
  }

  /** Returns what a page shows: what the server has, the reply that is streaming, and what is not acknowledged yet. */
  toShown(chatId: string, messages: readonly Message[], shown: readonly Message[]): Message[] {
    const streaming = this.readings.of(chatId).map(({ messageId, continues }) => messageId ?? continues);
    // That of an agent is not among those that have ended, though it may wait.
    streaming.push(this.commands.version(chatId).reply);
    const live = shown.filter(({ id, role }) => role === 'assistant' && streaming.includes(id));
    // When it has ended, the page reads again.
    if (live.length > 0) this.commands.version(chatId).version = undefined;
    const kept = messages.map((message) => live.find(({ id }) => id === message.id) ?? message);
    const all = [...kept, ...live.filter((message) => !kept.includes(message))];
    return withPending(all, this.commands.outbox.commands(chatId));
  }

  /**
   * Resolves when the replies of a chat that this page reads have ended; immediately if none has begun. One that continues a
   * message may stream nothing before an approved call has finished.
   */
  async waitForEnd(chatId: string): Promise<void> {
    for (const { over, messageId, continues } of this.readings.of(chatId))
      if ((messageId ?? continues) !== undefined) await over.promise;
  }

  /** Whether a reply of a chat has lost its connection. It is opened again by itself, and a stop still works. */
  isReconnecting(chatId: string): boolean {
    return this.readings.of(chatId).some(({ isLost }) => isLost);
  }

  /**
   * Sends the last message, and returns the stream of its reply. The page names the run, so that it can be stopped before
   * the first byte arrives.
   */
  override async sendMessages(options: Send<Message>): Promise<Chunks> {
    const { chatId, abortSignal, metadata, headers, messageId, trigger, body } = options;
    const named = options.messages.find(({ id, role }) => id === messageId && role === 'assistant');
    const message = named ?? options.messages.at(-1)!;
    const isContinued = message.role === 'assistant' && trigger === 'submit-message';
    this.last.set(chatId, { id: message.id, isWhole: !isContinued });
    // The server has the others, and with their files they may be too large.
    const messages = options.messages.filter(({ id }, i, { length }) => i === length - 1 || id === messageId);
    const sent: Sent<Message> = { messages, trigger, messageId, body, metadata };
    const { id: runId, stream: acknowledged } = this.commands.send(chatId, sent, { headers, abortSignal });
    const reading = this.readings.add(chatId, { runId, continues: isContinued ? message.id : undefined });
    const reopen: Open = (more) =>
      super.reconnectToStream({ chatId, metadata, ...this.#begin(options), headers: more });
    const read = await this.#read(options, reading, async () => {
      // A page that ends the reading has still sent the message.
      const first = await unlessAborted(acknowledged, abortSignal);
      // Those that see its answers read the rest themselves.
      const release = isContinued ? (): void => {} : await this.tabs.say(chatId, runId, message);
      reading.over.promise.then(release, release);
      return this.#keepReading(first, { reading, options, reopen });
    });
    return read!;
  }

  /** Resumes the stream of a reply that is still running, if there is one. */
  override async reconnectToStream(options: Resume<Message>): Promise<Chunks | null> {
    const { chatId, abortSignal } = options;
    const reopen: Open = (headers) => super.reconnectToStream({ ...options, ...this.#begin(options), headers });
    this.commands.outbox.restore(chatId);
    // When they are sent, their replies may end before they are read.
    for (const { body } of this.commands.outbox.commands(chatId)) {
      const message = (body as Partial<Sent<Message>>).messages?.at(-1);
      if (message) this.last.set(chatId, { id: message.id, isWhole: message.role === 'user' });
    }
    await this.commands.outbox.untilRead(chatId);
    abortSignal?.throwIfAborted();
    // Now the server names the run.
    for (const reading of this.readings.of(chatId)) this.readings.remove(chatId, reading);
    const passed = this.tabs.take(chatId);
    if (passed) this.last.set(chatId, { id: passed.message.id, isWhole: true });
    const reading = this.readings.add(chatId, {});
    const open: Open = () =>
      super.reconnectToStream({ ...options, ...this.#begin(options), headers: this.#toHeaders(options) });
    return this.#read(options, reading, async () => {
      const first = passed?.stream ?? (await this.#openFirst(open, { reading, options, reopen }));
      return first && this.#keepReading(first, { reading, options, reopen });
    });
  }

  /** A page that is opened while the network is away reads when it is back. */
  async #openFirst(open: Open, kept: KeptReading<Message>): Promise<Chunks | null> {
    try {
      return await open({});
    } catch (error) {
      if (!(error instanceof TypeError) || kept.options.abortSignal?.aborted) throw error;
      return reconnect(this.#toReconnect(kept));
    }
  }

  /** A connection that stays silent is given up. */
  #begin({ chatId, abortSignal }: { chatId: string; abortSignal?: AbortSignal | undefined }): {
    abortSignal: AbortSignal;
  } {
    return { abortSignal: this.link.call(chatId, RESPONSE_MS, abortSignal).signal };
  }

  #toHeaders({ chatId, headers }: Pick<Resume<Message>, 'chatId' | 'headers'>): Record<string, string> {
    const last = this.last.get(chatId);
    return {
      ...Object.fromEntries(new Headers(headers)),
      ...(last && { [LAST_MESSAGE]: `${encodeURIComponent(last.id)}${last.isWhole ? '' : ';partial'}` }),
    };
  }

  #keepReading(first: Chunks, kept: KeptReading<Message>): Chunks {
    return keepReading(first, { ...this.#toReconnect(kept), isContinued: kept.reading.continues !== undefined });
  }

  #toReconnect({ reading, options, reopen }: KeptReading<Message>) {
    return {
      signal: options.abortSignal,
      reopen: async (): Promise<Chunks | null> => {
        // A stop that the server does not know must be there first.
        await this.commands.outbox.untilRead(options.chatId);
        const again = await reopen(this.#toHeaders(options));
        this.commands.outbox.retryNow();
        return again;
      },
      onConnection: (isLost: boolean): void => {
        reading.isLost = isLost;
        this.tell();
      },
    };
  }

  async #read(
    { chatId, abortSignal }: { chatId: string; abortSignal?: AbortSignal | undefined },
    reading: Reading,
    open: () => Promise<Chunks | null>,
  ): Promise<Chunks | null> {
    const forget = (): void => this.readings.remove(chatId, reading);
    abortSignal?.addEventListener('abort', forget, { once: true });
    const onChunk = (chunk: UIMessageChunk, isEnd: boolean): void => {
      const { runId, messageId } = reading;
      if (messageId !== undefined) this.last.set(chatId, { id: messageId, isWhole: isEnd });
      if (runId === undefined) return;
      if (chunk.type === 'start') this.setOwn(chatId, messageId);
      this.tabs.post({ type: 'chunk', chatId, runId, chunk });
    };
    try {
      const stream = await open();
      if (stream === null) forget();
      return stream?.pipeThrough(watch(reading, { onChunk, onEnd: forget })) ?? null;
    } catch (error) {
      // A TypeError means that the network failed: the run may still be alive, and can be stopped.
      if (!(error instanceof TypeError)) forget();
      throw error;
    }
  }

  async #stopReading(chatId: string, reading: Reading, wanted: object): Promise<StopReceipt<Message>> {
    if (reading.runId === undefined) await reading.named.promise;
    const { runId, messageId = reading.continues } = reading;
    if (runId === undefined && messageId === undefined) return { result: 'idle' };
    const receipt = await this.commands.stop(chatId, { ...wanted, runId, messageId });
    if (receipt.result === 'given-up' || receipt.rolledBack === false) reading.stopped = undefined;
    return receipt;
  }
}

/** Rejects when the signal fires first. */
async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  const left = Promise.withResolvers<never>();
  const leave = (): void => left.reject(signal!.reason);
  if (signal?.aborted) leave();
  signal?.addEventListener('abort', leave, { once: true });
  try {
    return await Promise.race([work, left.promise]);
  } finally {
    signal?.removeEventListener('abort', leave);
  }
}
