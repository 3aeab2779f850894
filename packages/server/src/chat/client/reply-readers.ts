import type { ChatTransport, UIMessage, UIMessageChunk } from 'ai';
import { keepReading } from './keep-reading.ts';
import { Tabs } from './tabs.ts';

type Send<Message extends UIMessage> = Parameters<ChatTransport<Message>['sendMessages']>[0];
type Resume<Message extends UIMessage> = Parameters<ChatTransport<Message>['reconnectToStream']>[0];
type Chunks = ReadableStream<UIMessageChunk>;
type Open = (headers: Record<string, string>) => Promise<Chunks | null>;

interface KeptReading<Message extends UIMessage> {
  readonly reading: Reading;
  readonly options: Pick<Resume<Message>, 'chatId' | 'headers'> & { readonly abortSignal?: AbortSignal | undefined };
  readonly reopen: Open;
  readonly isContinued?: boolean;
}

/** A reply that this page reads. A resumed one has no name before its first chunk. */
export interface Reading {
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

/** What to stop, and what happens to the turn. */
export interface StopOptions {
  /** The reply (`foreground`, the default), what the chat left running on purpose (`background`), or both (`all`). */
  readonly scope?: 'foreground' | 'background' | 'all';
  /** Removes the stopped turn from the history. Refused if it had effects that were not undone. */
  readonly rollback?: boolean;
  /** The reason, for users and the audit. */
  readonly reason?: string;
}

/** The server's answer to a stop. */
export interface StopReceipt<Message extends UIMessage = UIMessage> {
  /**
   * `accepted`, or why not. `unanswered`: the server could not be reached, and asking again is safe. `idle`: this page
   * reads no reply that could be stopped.
   */
  readonly result: string;
  readonly rolledBack?: boolean;
  /** Why the turn stays in the history: these calls had effects that were not undone. */
  readonly effectsNotUndone?: readonly string[];
  /** How many background tasks were stopped, if that was asked for. */
  readonly background?: number;
  /** The message whose calls waited for a person or this page, as it is now. */
  readonly message?: Message;
}

/** The same, with the message whose calls wait for a person or for this page. */
export interface ChatStop extends StopOptions {
  readonly waiting?: string | undefined;
}

/** A user's answer to a question about a call. */
export interface ApprovalReply {
  readonly approvalId: string;
  readonly approved: boolean;
  /** The reason of a no, which is passed to the model. */
  readonly why?: string;
  /** Also applies to everything the question lists under `always`. */
  readonly remember?: boolean;
}

/** Sends a stop. It never rejects. */
type SendStop<Message extends UIMessage> = (stop: object) => Promise<StopReceipt<Message>>;

/** The header with the last message that a page shows, so that it misses nothing that ended before it asked. */
const LAST_MESSAGE = 'whoa-last-message';

/** The replies that a page reads, and the stops it has requested. */
export class ReplyReaders<Message extends UIMessage> {
  readonly tabs: Tabs<Message> = new Tabs();
  readonly #readings = new Map<string, Set<Reading>>();
  readonly #stopping = new Map<string, Promise<unknown>>();
  readonly #listeners = new Set<() => void>();
  /** The last message that the page has of each chat, and whether it is complete. */
  readonly #last = new Map<string, { readonly id: string; readonly isWhole: boolean }>();

  /**
   * Sends a stop for each reply, or for the message whose calls wait. If a stop could not be sent, the reply can be
   * stopped again.
   */
  stop(chatId: string, { waiting, ...options }: ChatStop, sendStop: SendStop<Message>): Promise<StopReceipt<Message>> {
    const { scope = 'foreground', reason } = options;
    const readings = scope === 'background' ? [] : [...(this.#readings.get(chatId) ?? [])];
    const isStopping = readings.every(({ stopped }) => stopped !== undefined);
    const stops = readings.map((reading) => {
      const { runId, messageId } = reading;
      const onReceipt = (receipt: StopReceipt<Message>): StopReceipt<Message> => {
        if (receipt.result === 'unanswered' || receipt.rolledBack === false) delete reading.stopped;
        return receipt;
      };
      return (reading.stopped ??= sendStop({ ...options, runId, messageId }).then(onReceipt)) as ReturnType<
        SendStop<Message>
      >;
    });
    if (stops.length === 0 && scope !== 'background' && waiting !== undefined)
      stops.push(sendStop({ ...options, messageId: waiting }));
    // A page that reads no reply must not stop one: it may be another page's.
    if (scope !== 'foreground' && isStopping) stops.push(sendStop({ scope: 'background', reason }));
    const all = Promise.all(stops).then((receipts) => {
      if (this.#stopping.get(chatId) === all) this.#stopping.delete(chatId);
      const receipt = Object.assign({ result: 'idle' }, ...receipts.toReversed()) as StopReceipt<Message>;
      if (receipt.message) this.tabs.post({ type: 'closed', chatId, message: receipt.message });
      return receipt;
    });
    if (stops.length > 0) this.#stopping.set(chatId, all);
    if (stops.length > 0 && scope !== 'background') this.tabs.post({ type: 'stopping', chatId, reason });
    return all;
  }

  async waitForEnd(chatId: string): Promise<void> {
    const started = [...(this.#readings.get(chatId) ?? [])].filter(({ messageId }) => messageId !== undefined);
    for (const { over } of started) await over.promise;
  }

  setLastMessage(chatId: string, messageId: string | undefined): void {
    if (messageId !== undefined && !this.#last.has(chatId)) this.#last.set(chatId, { id: messageId, isWhole: true });
  }

  /** Call it when a message has changed since its stream ended. */
  expectMore(chatId: string, messageId: string): void {
    this.#last.set(chatId, { id: messageId, isWhole: false });
  }

  /** Whether a reply of a chat has lost its connection, which is opened again. */
  isReconnecting(chatId: string): boolean {
    return [...(this.#readings.get(chatId) ?? [])].some(({ isLost }) => isLost);
  }

  /** Whether another tab reads the reply that this one shows, and runs its tools. */
  isPassedOn(chatId: string): boolean {
    return [...(this.#readings.get(chatId) ?? [])].some(({ isPassed }) => isPassed);
  }

  /** Calls a listener when `isReconnecting` may have changed, until the returned function is called. */
  onConnection(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Reads the reply to a message. The page names the run, so that it can be stopped before the first byte arrives. */
  async send(options: Send<Message>, open: (body: object) => Promise<Chunks>, reopen: Open): Promise<Chunks> {
    const { chatId, messages, messageId } = options;
    // Wait for the stop: if the server got it later, it would stop this message.
    await this.#stopping.get(chatId);
    const runId = crypto.randomUUID();
    const message = messages.find(({ id, role }) => id === messageId && role === 'assistant') ?? messages.at(-1)!;
    const isContinued = message.role === 'assistant' && options.trigger === 'submit-message';
    this.#last.set(chatId, { id: message.id, isWhole: !isContinued });
    const reading: Reading = { runId, over: Promise.withResolvers() };
    const stream = await this.#read(options, reading, async () => {
      const release = await this.tabs.say(chatId, runId, { ids: messages.map(({ id }) => id), message });
      reading.over.promise.then(release, release);
      return this.#keepReading(await open({ ...options.body, runId }), { reading, options, reopen, isContinued });
    });
    return stream!;
  }

  /** Reads the reply in progress. */
  async resume(options: Resume<Message>, open: Open): Promise<Chunks | null> {
    const { chatId } = options;
    await this.#stopping.get(chatId);
    // Now the server names the run.
    for (const { over } of this.#readings.get(chatId) ?? []) over.resolve();
    this.#readings.delete(chatId);
    const passed = this.tabs.take(chatId);
    if (passed) this.#last.set(chatId, { id: passed.message.id, isWhole: passed.message.role === 'user' });
    const reading: Reading = { over: Promise.withResolvers(), isPassed: passed !== undefined };
    return this.#read(options, reading, async () => {
      const first = passed?.stream ?? (await open(this.#toHeaders(options)));
      return first && this.#keepReading(first, { reading, options, reopen: open });
    });
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
        if (reading.runId !== undefined) this.tabs.post({ type: 'chunk', chatId, runId: reading.runId, chunk });
        if (isEnd) forget();
        controller.enqueue(chunk);
      },
      flush() {
        forget();
        if (reason !== undefined) throw new DOMException(reason, 'AbortError');
      },
    });
  }
}
