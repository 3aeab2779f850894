import type { UIMessage, UIMessageChunk } from 'ai';

/** What was said in another tab: the messages before the reply, by their ids, and the last one whole. */
export interface SaidElsewhere<Message extends UIMessage> {
  readonly ids: readonly string[];
  readonly message: Message;
}

type Note<Message extends UIMessage> =
  | { readonly type: 'said'; readonly chatId: string; readonly runId: string; readonly said: SaidElsewhere<Message> }
  | { readonly type: 'chunk'; readonly chatId: string; readonly runId: string; readonly chunk: UIMessageChunk };

type Listener<Message extends UIMessage> = (said: SaidElsewhere<Message>) => void;

/** A reply that another tab reads and passes on. */
interface Passed {
  readonly runId: string;
  readonly stream: ReadableStream<UIMessageChunk>;
  readonly controller: ReadableStreamDefaultController<UIMessageChunk>;
}

type Channel = InstanceType<typeof BroadcastChannel>;

const lockName = (runId: string): string => `whoa-reply-${runId}`;

/**
 * The tabs of a browser that show chats of one server. The tab that sends a message passes its reply on to the others:
 * a browser opens few connections to a server, and a Stop must not wait for a free one.
 */
export class Tabs<Message extends UIMessage> {
  readonly #listeners = new Map<string, Listener<Message>>();
  readonly #passed = new Map<string, Passed>();
  #channel: Channel | undefined;

  /**
   * Calls a listener when another tab says something in a chat, until the returned function is called. Does nothing
   * where tabs cannot reach each other: outside of browsers, and in pages that are not secure.
   */
  listen(api: string, chatId: string, listener: Listener<Message>): () => void {
    const { location } = globalThis as { location?: { readonly href: string } };
    if (location === undefined || !globalThis.navigator?.locks) return () => {};
    this.#listeners.set(chatId, listener);
    this.#channel ??= this.#open(new URL(api, location.href).href);
    return () => {
      if (this.#listeners.get(chatId) === listener) this.#listeners.delete(chatId);
      if (this.#listeners.size > 0) return;
      this.#channel?.close();
      this.#channel = undefined;
    };
  }

  /** Says what this tab sends. Other tabs are given the reply until the function it resolves with is called. */
  async say(chatId: string, runId: string, messages: readonly Message[]): Promise<() => void> {
    if (this.#channel === undefined) return () => {};
    const over = Promise.withResolvers<void>();
    const held = Promise.withResolvers<void>();
    const hold = (): Promise<void> => {
      held.resolve();
      return over.promise;
    };
    // The lock ends with the tab, which tells the others that nothing more comes.
    navigator.locks.request(lockName(runId), hold).catch(() => held.resolve());
    await held.promise;
    const said = { ids: messages.map(({ id }) => id), message: messages.at(-1)! };
    this.#post({ type: 'said', chatId, runId, said });
    return over.resolve;
  }

  pass(chatId: string, runId: string, chunk: UIMessageChunk): void {
    this.#post({ type: 'chunk', chatId, runId, chunk });
  }

  /** Returns the reply that another tab passes on, once. */
  take(chatId: string): ReadableStream<UIMessageChunk> | undefined {
    const stream = this.#passed.get(chatId)?.stream;
    return stream?.locked ? undefined : stream;
  }

  #open(api: string): Channel {
    const channel = new BroadcastChannel(`whoa-chat ${api}`);
    channel.onmessage = (event) => {
      const data = (event as { data: Note<Message> }).data;
      const { chatId, runId } = data;
      const listener = this.#listeners.get(chatId);
      const passed = this.#passed.get(chatId);
      if (data.type === 'chunk' && passed !== undefined && passed.runId === runId)
        passed.controller.enqueue(data.chunk);
      if (data.type !== 'said' || listener === undefined) return;
      this.#receive(chatId, runId);
      listener(data.said);
    };
    return channel;
  }

  #receive(chatId: string, runId: string): void {
    let controller: ReadableStreamDefaultController<UIMessageChunk>;
    const forget = (): void => {
      if (this.#passed.get(chatId)?.runId === runId) this.#passed.delete(chatId);
    };
    const stream = new ReadableStream<UIMessageChunk>({ start: (given) => (controller = given), cancel: forget });
    this.#passed.set(chatId, { runId, stream, controller: controller! });
    // It is free when the reply has ended, or its tab is gone: then the reader opens a connection.
    const close = (): void => {
      forget();
      controller.close();
    };
    navigator.locks.request(lockName(runId), close).catch(() => {});
  }

  #post(note: Note<Message>): void {
    try {
      this.#channel?.postMessage(note);
    } catch {
      // A message that cannot be copied is shown by the other tabs when they are opened again.
    }
  }
}
