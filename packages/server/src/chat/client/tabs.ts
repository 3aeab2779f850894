import type { UIMessage, UIMessageChunk } from 'ai';
import type { ChatState } from './chat-watch.ts';

/** What another tab of this browser has done in a chat. */
export type TabEvent<Message extends UIMessage> =
  /** It has sent a message. */
  | { readonly type: 'said'; readonly message: Message }
  /** It stops the chat, with what runs in its pages. */
  | { readonly type: 'stopping'; readonly reason?: string | undefined }
  /** The server has told it what the chat is now. */
  | { readonly type: 'state'; readonly state: ChatState };

type Note<Message extends UIMessage> = {
  readonly chatId: string;
  readonly runId?: string | undefined;
  /** Whose page has sent it. */
  readonly principal?: string | undefined;
} & (TabEvent<Message> | { readonly type: 'chunk'; readonly chunk: UIMessageChunk });

type Listener<Message extends UIMessage> = (event: TabEvent<Message>) => void;

/** A reply that another tab reads and passes on. */
interface Passed<Message extends UIMessage> {
  readonly runId: string | undefined;
  /** What was said. */
  readonly message: Message;
  readonly stream: ReadableStream<UIMessageChunk>;
  readonly add: (chunk: UIMessageChunk) => void;
}

type Channel = InstanceType<typeof BroadcastChannel>;

/** What a tab has passed on may arrive after its lock was freed. */
const PASSING_MS = 200;

const lockName = (runId: string | undefined): string => `whoa-reply-${runId}`;

/**
 * The tabs of a browser that show chats of one server. The tab that sends a message passes its reply on to the others:
 * a browser opens few connections to a server, and a Stop must not wait for a free one.
 */
export class Tabs<Message extends UIMessage> {
  readonly #listeners = new Set<{ readonly chatId: string; readonly listener: Listener<Message> }>();
  readonly #passed = new Map<string, Passed<Message>>();
  readonly #principal: (chatId: string) => string | undefined;
  #channel: Channel | undefined;

  constructor(principal: (chatId: string) => string | undefined) {
    this.#principal = principal;
  }

  /**
   * Calls a listener with what other tabs do in a chat, until the returned function is called. Does nothing where tabs
   * cannot reach each other: outside of browsers, and in pages that are not secure.
   */
  listen(api: string, chatId: string, listener: Listener<Message>): () => void {
    const { location } = globalThis as { location?: { readonly href: string } };
    if (location === undefined || !globalThis.navigator?.locks) return () => {};
    const own = { chatId, listener };
    this.#listeners.add(own);
    this.#channel ??= this.#open(new URL(api, location.href).href);
    return () => {
      this.#listeners.delete(own);
      if (this.#listeners.size > 0) return;
      this.#channel?.close();
      this.#channel = undefined;
    };
  }

  /** Says what this tab sends. Other tabs are given the reply until the function it resolves with is called. */
  async say(chatId: string, runId: string, message: Message): Promise<() => void> {
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
    this.post({ type: 'said', chatId, runId, message });
    return over.resolve;
  }

  /** Returns the reply that another tab passes on, and what was said, once. */
  take(chatId: string): Passed<Message> | undefined {
    const passed = this.#passed.get(chatId);
    return passed?.stream.locked ? undefined : passed;
  }

  post(note: Note<Message>): void {
    try {
      this.#channel?.postMessage({ ...note, principal: this.#principal(note.chatId) });
    } catch {
      // A message that cannot be copied is shown by the other tabs when they are opened again.
    }
  }

  #open(api: string): Channel {
    const channel = new BroadcastChannel(`whoa-chat ${api}`);
    channel.onmessage = (event) => {
      const note = (event as { data: Note<Message> }).data;
      const { chatId, runId, principal } = note;
      // Another user has logged in, and has a chat of the same name.
      if (principal !== (this.#principal(chatId) ?? principal)) return;
      const passed = this.#passed.get(chatId);
      if (note.type === 'chunk') {
        if (passed !== undefined && passed.runId === runId) passed.add(note.chunk);
        return;
      }
      const own = [...this.#listeners].filter((one) => one.chatId === chatId);
      if (own.length > 0 && note.type === 'said') this.#receive(chatId, runId, note.message);
      for (const { listener } of own) listener(note);
    };
    return channel;
  }

  #receive(chatId: string, runId: string | undefined, message: Message): void {
    let controller: ReadableStreamDefaultController<UIMessageChunk> | undefined;
    const stream = new ReadableStream<UIMessageChunk>({
      start: (given) => (controller = given),
      cancel: () => (controller = undefined),
    });
    const close = (): void => {
      controller?.close();
      controller = undefined;
    };
    const add = (chunk: UIMessageChunk): void => {
      controller?.enqueue(chunk);
      if (chunk.type === 'finish' || chunk.type === 'abort') close();
    };
    this.#passed.set(chatId, { runId, message, stream, add });
    // It is free when the reply has ended, or its tab is gone: then the reader opens a connection.
    navigator.locks.request(lockName(runId), () => void setTimeout(close, PASSING_MS)).catch(() => {});
  }
}
