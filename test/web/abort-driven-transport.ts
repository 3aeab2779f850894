// What one would write first: every abort is taken for a stop. It is here to fail the scenarios that ours passes.
import { DefaultChatTransport, type UIMessage } from 'ai';

type Send = Parameters<DefaultChatTransport<UIMessage>['sendMessages']>[0];
type Resume = Parameters<DefaultChatTransport<UIMessage>['reconnectToStream']>[0];

export class AbortDrivenTransport extends DefaultChatTransport<UIMessage> {
  override sendMessages(options: Send): ReturnType<DefaultChatTransport<UIMessage>['sendMessages']> {
    this.#stopOnAbort(options);
    return super.sendMessages(options);
  }

  override reconnectToStream(options: Resume): ReturnType<DefaultChatTransport<UIMessage>['reconnectToStream']> {
    this.#stopOnAbort(options);
    return super.reconnectToStream(options);
  }

  #stopOnAbort({ chatId, abortSignal }: { chatId: string; abortSignal?: AbortSignal | undefined }): void {
    const headers = { 'content-type': 'application/json' };
    const stop = () => fetch(`${this.api}/${chatId}/stop`, { method: 'POST', keepalive: true, headers, body: '{}' });
    abortSignal?.addEventListener('abort', () => void stop(), { once: true });
  }
}
