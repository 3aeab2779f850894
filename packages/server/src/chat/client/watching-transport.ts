import type { UIMessage } from 'ai';
import { type ChatState, watchStates } from './chat-watch.ts';
import { attempt } from './command-storage.ts';
import { KeepingTransport } from './keeping-transport.ts';
import { ReplyReadings } from './readings.ts';
import { PRINCIPAL } from './server-link.ts';
import { type TabEvent, Tabs } from './tabs.ts';
import { findOpenQuestions } from './waiting-message.ts';

/** Where a tab notes which reply it has asked for. */
const OWN = 'whoa-own ';

/** A transport that knows what a page has read of each chat, and hears what others change. */
export abstract class WatchingTransport<Message extends UIMessage> extends KeepingTransport<Message> {
  protected readonly tabs: Tabs<Message> = new Tabs((chatId) => this.link.principal(chatId));
  // What a reply adds is in the chat when it has ended, and not before.
  protected readonly readings: ReplyReadings = new ReplyReadings(() => this.commands.noteChange());
  /** What the server has said last about each chat. */
  readonly #states = new Map<string, ChatState>();
  /** The last message that the page has of each chat, and whether it is complete. */
  protected readonly last: Map<string, { readonly id: string; readonly isWhole: boolean }> = new Map();

  /** Whether the page reads a reply of a chat, or has asked for one. */
  isReading(chatId: string): boolean {
    return this.readings.of(chatId).length > 0;
  }

  /**
   * Calls a listener with the state of a chat when it has changed, whoever has changed it, until the returned function is
   * called. `isShown` says whether the page has read it, and `isMissed` whether `reconnectToStream` reads more.
   */
  watch(chatId: string, listener: (state: ChatState) => void): () => void {
    const leaving = new AbortController();
    const tell = (state: ChatState): void => {
      this.#states.set(chatId, state);
      listener(state);
    };
    const forget = this.onOtherTab(chatId, (event) => (event.type === 'state' ? tell(event.state) : undefined));
    const open = async (signal: AbortSignal): Promise<Response> => {
      const { version = '' } = this.commands.version(chatId);
      const principal = this.link.principal(chatId);
      const headers = principal === undefined ? {} : { [PRINCIPAL]: principal };
      const response = await this.commands.request(chatId, `watch?after=${version}`, { signal, headers });
      this.retryNow();
      return response;
    };
    const onState = (state: ChatState): void => {
      this.tabs.post({ type: 'state', chatId, state });
      tell(state);
    };
    watchStates({ name: `whoa-watch ${this.api} ${chatId}`, open, onState }, leaving.signal).catch(() => {});
    return () => {
      forget();
      leaving.abort();
    };
  }

  /** Whether the page has read the messages of this state. */
  isShown(chatId: string, { version }: ChatState): boolean {
    return this.commands.version(chatId).version === version;
  }

  /** Whether a reply is in progress of which a page that shows this message last has not read all. */
  isMissed(chatId: string, { reply, questions }: ChatState, message: Message | undefined): boolean {
    if (reply === undefined || this.isReading(chatId) || this.pending(chatId).length > 0) return false;
    const isOwn = message?.id === reply && this.last.get(chatId)?.id === reply && this.last.get(chatId)!.isWhole;
    return !isOwn || findOpenQuestions(message).toSorted().join() !== questions.toSorted().join();
  }

  /**
   * Calls a listener with what other tabs of this browser do in a chat, until the returned function is called. After
   * something was said, `reconnectToStream` reads the reply.
   */
  onOtherTab(chatId: string, listener: (event: TabEvent<Message>) => void): () => void {
    return this.tabs.listen(this.api, chatId, listener);
  }

  /** Whether the page has asked for the reply that it reads, also before it was loaded again. Then it runs its tools. */
  isOwn(chatId: string): boolean {
    const own = attempt(() => sessionStorage.getItem(OWN + chatId));
    return this.readings.of(chatId).some(({ runId, messageId }) => runId !== undefined || messageId === own);
  }

  /** Notes the message whose reply this page has asked for; none if another one has. */
  setOwn(chatId: string, messageId = ''): void {
    attempt(() => sessionStorage.setItem(OWN + chatId, messageId));
  }

  /** Sets the last message that a newly opened page shows. A reply that ended in between is streamed to it. */
  setLastMessage(chatId: string, messageId: string | undefined): void {
    if (messageId !== undefined && !this.last.has(chatId)) this.last.set(chatId, { id: messageId, isWhole: true });
  }

  /** Says that a message continues with this page's answers. The next reading has all of it. */
  setPartial(chatId: string, messageId: string): void {
    this.setOwn(chatId, messageId);
    this.last.set(chatId, { id: messageId, isWhole: false });
  }

  /** Returns the message of a reply that runs, and that this page has not read. */
  protected findUnread(chatId: string): string | undefined {
    const { reply } = this.#states.get(chatId) ?? {};
    const last = this.last.get(chatId);
    return last?.id === reply && last?.isWhole ? undefined : reply;
  }
}
