import { type Clock, systemClock } from '@whoa/core/embed';
import type { Access } from '../access/access.ts';
import { refuse } from '../access/refusal.ts';
import type { Chat } from '../chat/chat.ts';
import { type SocketLike, SocketSession } from './socket-session.ts';

export interface WebSocketOptions {
  readonly chat: Chat;
  readonly access: Access;
  readonly api: string;
  /** Called before the first frame is served. */
  readonly begin: () => void;
  readonly onError: (error: unknown) => void;
  readonly clock?: Clock;
}

/** Serves a socket that was opened. */
export type ServeSocket = (socket: SocketLike) => void;

/** The chat over WebSocket, for the AI SDK's `WebSocketChatTransport`. Disposing it closes every socket. */
export interface WebSockets extends AsyncDisposable {
  /** Checks a handshake. Returns the function that serves its socket, or the response that refuses it. */
  readonly upgrade: (request: Request) => Promise<Response | ServeSocket>;
  /** Serves an open socket. If it is not allowed, closes it with 1008. */
  readonly webSocket: (socket: SocketLike, request: Request) => void;
}

/** Why a socket is closed: codes of the WebSocket protocol. */
const GOING_AWAY = 1001;
const REFUSED = 1008;

export function createWebSockets(options: WebSocketOptions): WebSockets {
  const { chat, access, api, begin, onError, clock = systemClock } = options;
  const sessions = new Set<SocketSession>();

  function serve(socket: SocketLike, request: Request): SocketSession {
    begin();
    const session = new SocketSession(socket, { chat, access, request, onError, clock });
    sessions.add(session);
    session.ended.then(() => sessions.delete(session), onError);
    return session;
  }

  return {
    async upgrade(request) {
      if (new URL(request.url).pathname !== api)
        return refuse(404, { code: 'unknown-route', message: 'There is no such route of a chat' });
      const who = await access.admit(request, 'read');
      return who instanceof Response ? who : (socket) => void serve(socket, request);
    },
    webSocket(socket, request) {
      const session = serve(socket, request);
      access
        .admit(request, 'read')
        .then((who) => who instanceof Response && session.close(REFUSED, 'Refused'))
        .catch(onError);
    },
    async [Symbol.asyncDispose]() {
      for (const session of sessions) session.close(GOING_AWAY, 'The server stops; resume elsewhere');
      await Promise.all([...sessions].map(({ ended }) => ended));
    },
  };
}
