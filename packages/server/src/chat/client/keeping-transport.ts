import type { UIMessage } from 'ai';
import type { ApprovalReply } from './chat-stop.ts';
import { Commands } from './commands.ts';
import { type HttpOptions, HttpTransport, resolve } from './http-transport.ts';
import type { PendingCommand, Settled } from './outbox.ts';
import { ServerLink } from './server-link.ts';

/** A transport that sends what a user does until the server has acknowledged or refused it, also after a reload. */
export abstract class KeepingTransport<Message extends UIMessage> extends HttpTransport<Message> {
  protected readonly link: ServerLink;
  protected readonly commands: Commands<Message>;
  readonly #listeners = new Set<() => void>();
  readonly #settledListeners = new Set<(settled: Settled) => void>();

  constructor(options: HttpOptions<Message> = {}) {
    const link = new ServerLink(options.fetch as typeof fetch | undefined);
    super(options, link.fetch);
    this.link = link;
    const send: HttpTransport<Message>['sendMessages'] = (sent) => super.sendMessages(sent);
    this.commands = new Commands<Message>({
      api: this.api,
      link,
      headers: () => resolve(options.headers),
      credentials: () => resolve(options.credentials),
      sendMessages: (sent) => send(sent as Parameters<typeof send>[0]),
      onChange: () => this.tell(),
      onSettled: (settled) => {
        for (const listener of this.#settledListeners) listener(settled);
      },
    });
  }

  /** Answers the question of a `tool-approval-request`. Resolves with whether the answer was accepted. */
  approve(chatId: string, answer: ApprovalReply): Promise<boolean> {
    return this.commands.approve(chatId, answer).then(
      () => true,
      () => false,
    );
  }

  /** Sends what a page says about the calls of a message, unless it was sent. Resolves when the server has it. */
  async answer(chatId: string, message: Message): Promise<boolean> {
    if (this.commands.isSent(message)) return false;
    await this.commands.send(chatId, { messages: [message], trigger: 'submit-message', messageId: message.id }).stream;
    return true;
  }

  /** Whether everything that a message says about its calls was sent. */
  isSent(message: Message): boolean {
    return this.commands.isSent(message);
  }

  /** What the server has not acknowledged yet. */
  pending(chatId: string): readonly PendingCommand[] {
    return this.commands.outbox.pending(chatId);
  }

  /** Sends what waits now, and not after a pause. */
  readonly retryNow = (): void => this.commands.outbox.retryNow();

  /** Forgets a command, by its id in `pending`. The server may have it. */
  readonly giveUp = (id: string): void => this.commands.outbox.giveUp(id);

  /** Call it when a page shows a chat: it continues with what was not acknowledged when the page was loaded again. */
  open(chatId: string): void {
    this.link.forget(chatId);
    this.commands.outbox.restore(chatId);
  }

  /** Reads a chat from the server. Contains no reply that is in progress. */
  readMessages(chatId: string): Promise<Message[]> {
    return this.commands.readMessages(chatId);
  }

  /** Calls a listener when `pending`, or the connection, may have changed, until the returned function is called. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Calls a listener when the server has acknowledged or refused a command, until the returned function is called. */
  onSettled(listener: (settled: Settled) => void): () => void {
    this.#settledListeners.add(listener);
    return () => void this.#settledListeners.delete(listener);
  }

  protected tell(): void {
    for (const listener of this.#listeners) listener();
  }
}
