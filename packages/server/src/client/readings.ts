import type { ChatTransport, UIMessage, UIMessageChunk } from 'ai';

type Send<Message extends UIMessage> = Parameters<ChatTransport<Message>['sendMessages']>[0];
type Resume<Message extends UIMessage> = Parameters<ChatTransport<Message>['reconnectToStream']>[0];
type Chunks = ReadableStream<UIMessageChunk>;

/** A reply that this page reads. One that was resumed has no name before its first chunk. */
export interface Reading {
  runId?: string;
  messageId?: string;
  stopped?: Promise<void>;
  /** Resolves when nothing more comes. */
  over?: Promise<void>;
}

/** What is stopped, and what becomes of the turn. */
export interface StopOptions {
  /** The reply (`foreground`, the default), what the chat left running on purpose (`background`), or both (`all`). */
  readonly scope?: 'foreground' | 'background' | 'all';
  /** Takes the stopped turn out of the history. Refused while something it did to the world stands. */
  readonly rollback?: boolean;
  /** For people and the audit. */
  readonly reason?: string;
}

/** What a person says to a question about a call. */
export interface ApprovalReply {
  readonly approvalId: string;
  readonly approved: boolean;
  /** With a no: what the model is told. */
  readonly why?: string;
  /** Also for what the question says that `always` covers. */
  readonly remember?: boolean;
}

/** A transport of `useChat` with a stop of its own. */
export interface StoppableTransport<Message extends UIMessage> extends ChatTransport<Message> {
  /** Stops what this page reads of a chat. Call it before the SDK's own `stop`: then nothing is read any more. */
  stop(chatId: string, options?: StopOptions): Promise<void>;
  /** Answers the question of a `tool-approval-request`. Resolves with whether it still counted. */
  approve(chatId: string, answer: ApprovalReply): Promise<boolean>;
  /** Resolves when what this page reads of a chat has come to its end; at once if it has not begun. */
  ended(chatId: string): Promise<void>;
  /** Says which message a page that was just opened shows last. A reply that ended in between is streamed to it. */
  shows(chatId: string, messageId: string | undefined): void;
}

/** The next message waits this long for the answer to a stop, and no longer. */
export const POST_MS = 5_000;
/** Tells the server what a page shows last, so that it misses nothing that ended before it asked. */
const LAST_MESSAGE = 'whoa-last-message';

/** What a page reads of its chats, over any transport, and what it has asked to stop. */
export class Readings<Message extends UIMessage> {
  readonly #readings = new Map<string, Set<Reading>>();
  readonly #stopping = new Map<string, Promise<unknown>>();
  /** The last message that the page has of each chat, and whether it is whole. */
  readonly #last = new Map<string, { readonly id: string; readonly isWhole: boolean }>();

  /** Has the server told to stop each reply. One that could not be told can be stopped again. */
  stop(chatId: string, options: StopOptions, tell: (stop: object) => Promise<boolean>): Promise<void> {
    const { scope = 'foreground', reason } = options;
    const readings = scope === 'background' ? [] : [...(this.#readings.get(chatId) ?? [])];
    const isTold = readings.every(({ stopped }) => stopped !== undefined);
    const stops = readings.map((reading) => {
      const { runId, messageId } = reading;
      const failed = (): void => void delete reading.stopped;
      const told = (isDone: boolean): void => (isDone ? undefined : failed());
      return (reading.stopped ??= tell({ ...options, runId, messageId }).then(told, failed));
    });
    // A page that reads nothing stops no reply, which may be another page's.
    if (scope !== 'foreground' && isTold) stops.push(tell({ scope: 'background', reason }).then(ignore, ignore));
    const all = Promise.all(stops).then(() => {
      if (this.#stopping.get(chatId) === all) this.#stopping.delete(chatId);
    });
    if (stops.length > 0) this.#stopping.set(chatId, all);
    return all;
  }

  async ended(chatId: string): Promise<void> {
    const started = [...(this.#readings.get(chatId) ?? [])].filter(({ messageId }) => messageId !== undefined);
    for (const { over } of started) await over;
  }

  shows(chatId: string, messageId: string | undefined): void {
    if (messageId !== undefined && !this.#last.has(chatId)) this.#last.set(chatId, { id: messageId, isWhole: true });
  }

  /** Reads the reply to a message. The run is named here, so that it can be stopped before the first byte of an answer. */
  async send(options: Send<Message>, open: (body: object) => Promise<Chunks>): Promise<Chunks> {
    // The server must see the stop first, else it would stop this one.
    await this.#stopping.get(options.chatId);
    const runId = crypto.randomUUID();
    const said = options.messages.at(-1);
    if (said !== undefined) this.#last.set(options.chatId, { id: said.id, isWhole: true });
    return (await this.#read(options, { runId }, () => open({ ...options.body, runId })))!;
  }

  /** Reads the reply under way. */
  async resume(
    options: Resume<Message>,
    open: (headers: Record<string, string>) => Promise<Chunks | null>,
  ): Promise<Chunks | null> {
    await this.#stopping.get(options.chatId);
    // From here on the server says which run it is.
    this.#readings.delete(options.chatId);
    const last = this.#last.get(options.chatId);
    const headers = {
      ...Object.fromEntries(new Headers(options.headers)),
      ...(last && { [LAST_MESSAGE]: `${encodeURIComponent(last.id)}${last.isWhole ? '' : ';partial'}` }),
    };
    return this.#read(options, {}, () => open(headers));
  }

  async #read(
    { chatId, abortSignal }: { chatId: string; abortSignal?: AbortSignal | undefined },
    reading: Reading,
    open: () => Promise<Chunks | null>,
  ): Promise<Chunks | null> {
    const readings = this.#readings.get(chatId) ?? new Set();
    this.#readings.set(chatId, readings.add(reading));
    const { promise, resolve: end } = Promise.withResolvers<void>();
    reading.over = promise;
    const forget = (): void => {
      readings.delete(reading);
      end();
    };
    abortSignal?.addEventListener('abort', forget, { once: true });
    try {
      const stream = await open();
      if (stream === null) forget();
      return stream?.pipeThrough(this.#watch(chatId, reading, forget)) ?? null;
    } catch (error) {
      // A TypeError says that the network failed: the run may be alive, and can still be stopped.
      if (!(error instanceof TypeError)) forget();
      throw error;
    }
  }

  /** Learns the name of a reply from its chunks, and ends it as stopped if it was: the SDK takes no notice of `abort`. */
  #watch(chatId: string, reading: Reading, forget: () => void): TransformStream<UIMessageChunk, UIMessageChunk> {
    let reason: string | undefined;
    return new TransformStream({
      transform: (chunk, controller) => {
        const isEnd = chunk.type === 'finish' || chunk.type === 'abort';
        if (chunk.type === 'start' && chunk.messageId !== undefined) reading.messageId = chunk.messageId;
        if (chunk.type === 'abort') reason = chunk.reason ?? 'stopped';
        if (reading.messageId !== undefined) this.#last.set(chatId, { id: reading.messageId, isWhole: isEnd });
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

const ignore = (): void => {};
