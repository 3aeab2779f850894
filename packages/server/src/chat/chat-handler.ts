import { SettingsError } from '@whoa/core';
import { settings } from '@whoa/core/internal';
import type { UIMessage } from 'ai';
import type { Identity } from '../http/access/principal.ts';
import { readMessages } from './chat-history.ts';
import { type ChatPage, type ChatPageRequest, listChats, removeChat, requireRights } from './chat-list.ts';
import { createChatRoutes, type Fetch } from './chat-routes.ts';
import { CHAT_RULES, type ChatServiceOptions, createChatService, PATH_RULE } from './chat-service.ts';
import { touchChat } from './chat-watch.ts';
import type { ChatTools } from './reply-options.ts';

/** Options of a chat handler: who sends messages, and an `agent` or a `reply` that replies. */
export interface ChatHandlerOptions<Tools extends ChatTools> extends ChatServiceOptions<Tools> {
  /** Where the handler is mounted. Defaults to `/api/chat`. */
  readonly api?: string | undefined;
  /** The request headers that `reply` gets and the store keeps. Defaults to none; `cookie` and `authorization` are rejected. */
  readonly forwardHeaders?: readonly string[] | undefined;
}

const HANDLER_RULES: settings.Rules<ChatHandlerOptions<ChatTools>> = {
  ...CHAT_RULES,
  api: PATH_RULE,
  forwardHeaders: settings.listOf(settings.nonEmptyText),
};

/**
 * Spread `GET`, `POST` and `DELETE` into a route file, or pass `fetch` to a server. Dispose it to hand unfinished replies
 * on. The other functions are for your server: they reject if the user lacks the right.
 */
export interface ChatHandler extends AsyncDisposable {
  readonly fetch: Fetch;
  readonly GET: Fetch;
  readonly POST: Fetch;
  readonly DELETE: Fetch;
  /** Returns a chat as a page shows it when it is opened, to render it on the server. Needs the right `read`. */
  readonly messages: (chatId: string, user: Identity) => Promise<readonly UIMessage[]>;
  /** Lists the chats of a user that the store keeps. Needs the right `read`. */
  readonly chats: (user: Identity, page?: ChatPageRequest) => Promise<ChatPage>;
  /**
   * Stops what a chat does, and removes all of it from the store. Resolves with whether nothing is left: if not, a reply
   * takes long to stop, and you call it again. Needs the rights `start` and `cancel`.
   */
  readonly remove: (chatId: string, user: Identity) => Promise<boolean>;
  /** Call it after you have changed a chat in your own database: its open pages read it again. Needs the right `start`. */
  readonly touch: (chatId: string, user: Identity) => Promise<void>;
}

/**
 * Serves chats to `useChat`, with a stop that stops the run.
 *
 * @returns The handlers `GET`, `POST` and `DELETE`, `fetch` for all of them, and functions for your server.
 * @throws {@link SettingsError} when an option is invalid.
 *
 * @example
 * ```ts
 * import { createChatHandler } from '@whoa/server';
 * import { streamText } from 'ai';
 *
 * export const { GET, POST } = createChatHandler({
 *   store: 'memory', // In production: process.env['DATABASE_URL']
 *   authenticate: async (request) => (await readSession(request))?.user,
 *   tools,
 *   reply: (turn) => streamText({ model, ...turn }),
 * });
 * ```
 */
export function createChatHandler<Tools extends ChatTools = Record<never, never>>(
  given: ChatHandlerOptions<Tools>,
): ChatHandler {
  const options = settings.readSettings<ChatHandlerOptions<Tools>>(given, HANDLER_RULES);
  const { api = '/api/chat', forwardHeaders = [] } = options;
  const secret = forwardHeaders.find((name) => /^(proxy-)?authorization$|^cookie$/i.test(name));
  if (secret !== undefined)
    throw new SettingsError(
      'forwardHeaders',
      `'${secret}' is not stored; use it in authenticate, and pass on a principal`,
    );
  const service = createChatService(options);
  const { chat } = service;
  const fetch = createChatRoutes(service, { api, forwardHeaders });
  return {
    fetch,
    GET: fetch,
    POST: fetch,
    DELETE: fetch,
    messages: async (chatId, user) => readMessages(chat, { who: requireRights(user, 'read'), chatId }),
    chats: async (user, page = {}) => listChats(chat, requireRights(user, 'read'), page),
    touch: async (chatId, user) => touchChat(chat, { who: requireRights(user, 'start'), chatId }),
    remove: async (chatId, user) => removeChat(chat, { who: requireRights(user, 'start', 'cancel'), chatId }),
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  };
}
