import { createChatRoutes } from './chat-routes.ts';
import { type ChatServiceOptions, createChatService } from './chat-service.ts';
import type { ChatTools } from './reply-options.ts';

/** Options of a chat handler: who sends messages, and an `agent` or a `reply` that replies. */
export interface ChatHandlerOptions<Tools extends ChatTools> extends ChatServiceOptions<Tools> {
  /** Where the handler is mounted. Defaults to `/api/chat`. */
  readonly api?: string;
  /** The request headers that `reply` gets and the store keeps. Defaults to none; `cookie` and `authorization` are refused. */
  readonly forwardHeaders?: readonly string[];
}

/** Spread `GET` and `POST` into a route file, or pass `fetch` to a server. Dispose it to hand unfinished replies on. */
export interface ChatHandler extends AsyncDisposable {
  readonly fetch: (request: Request) => Promise<Response>;
  readonly GET: (request: Request) => Promise<Response>;
  readonly POST: (request: Request) => Promise<Response>;
}

/**
 * Serves chats to `useChat`, with a stop that stops the run.
 *
 * @returns The handlers `GET` and `POST`, and `fetch` for both.
 * @throws TypeError when an option is invalid.
 *
 * @example
 * ```ts
 * import { createChatHandler } from '@whoa/server';
 * import { streamText } from 'ai';
 *
 * export const { GET, POST } = createChatHandler({
 *   store,
 *   authenticate: () => 'ada',
 *   tools,
 *   reply: (turn) => streamText({ model, ...turn }),
 * });
 * ```
 */
export function createChatHandler<Tools extends ChatTools = Record<never, never>>(
  options: ChatHandlerOptions<Tools>,
): ChatHandler {
  const { api = '/api/chat', forwardHeaders = [] } = options;
  const secret = forwardHeaders.find((name) => /^(proxy-)?authorization$|^cookie$/i.test(name));
  if (secret !== undefined)
    throw new TypeError(`forwardHeaders: '${secret}' is not stored; use it in authenticate, and pass on a principal`);
  const { chat, access, onError, begin, ...service } = createChatService(options);
  const routes = createChatRoutes({ chat, access, api, forwardHeaders, onError });
  const fetch = async (request: Request): Promise<Response> => {
    begin();
    return routes.fetch(request);
  };
  return {
    fetch,
    GET: fetch,
    POST: fetch,
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  };
}
