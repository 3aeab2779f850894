import { type UIMessage, type UIMessageChunk, WebSocketChatTransport } from 'ai';
import { type ApprovalReply, POST_MS, Readings, type StopOptions, type StoppableTransport } from './readings.ts';

type Options<Message extends UIMessage> = ConstructorParameters<typeof WebSocketChatTransport<Message>>[0];
type Send<Message extends UIMessage> = Parameters<WebSocketChatTransport<Message>['sendMessages']>[0];
type Resume<Message extends UIMessage> = Parameters<WebSocketChatTransport<Message>['reconnectToStream']>[0];

const OPEN = 1;

/** A WebSocket transport of `useChat` that can stop runs. The SDK's `abort`, and a closed socket, stop nothing. */
export class StoppableWebSocketChatTransport<Message extends UIMessage = UIMessage>
  extends WebSocketChatTransport<Message>
  implements StoppableTransport<Message>
{
  readonly #readings = new Readings<Message>();
  readonly #sockets: WebSocket[];

  constructor(options: Options<Message>) {
    const sockets: WebSocket[] = [];
    // Needed because the SDK does not expose its socket.
    const construct = (Base: typeof WebSocket, args: unknown[]): WebSocket =>
      (sockets[0] = Reflect.construct(Base, args) as WebSocket);
    const webSocket = new Proxy((options.webSocket ?? globalThis.WebSocket) as typeof WebSocket, { construct });
    super({ ...options, webSocket: webSocket as unknown as NonNullable<Options<Message>['webSocket']> });
    this.#sockets = sockets;
  }

  stop(chatId: string, options: StopOptions = {}): Promise<void> {
    return this.#readings.stop(chatId, options, (stop) => this.#ask(chatId, { type: 'stop', ...stop }));
  }

  approve(chatId: string, answer: ApprovalReply): Promise<boolean> {
    return this.#ask(chatId, { type: 'approve', ...answer });
  }

  ended(chatId: string): Promise<void> {
    return this.#readings.ended(chatId);
  }

  shows(chatId: string, messageId: string | undefined): void {
    this.#readings.shows(chatId, messageId);
  }

  override sendMessages(options: Send<Message>): Promise<ReadableStream<UIMessageChunk>> {
    return this.#readings.send(options, (body) => super.sendMessages({ ...options, body }));
  }

  override reconnectToStream(options: Resume<Message>): Promise<ReadableStream<UIMessageChunk> | null> {
    return this.#readings.resume(options, (headers) => super.reconnectToStream({ ...options, headers }));
  }

  /** Resolves with whether the request succeeded. */
  async #ask(id: string, frame: object): Promise<boolean> {
    const abortSignal = AbortSignal.timeout(POST_MS);
    // The SDK opens a socket only for a request.
    if (this.#sockets[0]?.readyState !== OPEN)
      await (await super.reconnectToStream({ chatId: id, abortSignal }))?.cancel();
    const socket = this.#sockets[0]!;
    const requestId = crypto.randomUUID();
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const onMessage = ({ data }: { data: unknown }): void => {
      const got = JSON.parse(String(data)) as { type?: string; requestId?: string };
      if (got.requestId === requestId) resolve(got.type === 'receipt');
    };
    const onEnd = (): void => resolve(false);
    socket.addEventListener('message', onMessage);
    socket.addEventListener('close', onEnd);
    abortSignal.addEventListener('abort', onEnd);
    try {
      socket.send(JSON.stringify({ ...frame, requestId, id }));
      return await promise;
    } finally {
      socket.removeEventListener('message', onMessage);
      socket.removeEventListener('close', onEnd);
    }
  }
}
