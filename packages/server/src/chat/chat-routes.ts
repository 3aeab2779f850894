import { Hono, type MiddlewareHandler } from 'hono';
import type { Access } from '../http/access/access.ts';
import { hashPrincipal, type Principal, type Right } from '../http/access/principal.ts';
import { refuse } from '../http/access/refusal.ts';
import { withCors } from '../http/cors.ts';
import { responseTo } from '../http/http-error.ts';
import { streamEvents } from '../http/sse.ts';
import { sendMessage, streamReply } from './chat.ts';
import { listChats, removeChat, requireRights } from './chat-list.ts';
import {
  answerCalls,
  approveRequest,
  checked,
  LAST_MESSAGE,
  listRequest,
  type OpenReply,
  pathNames,
  readJson,
  readSend,
  replyFor,
  stopRequest,
} from './chat-request.ts';
import type { ChatService } from './chat-service.ts';
import { readView, watchChat } from './chat-watch.ts';
import { answerQuestion } from './questions.ts';
import { stopChat } from './stop-run.ts';
import { createUnknownWarning } from './unknown-messages.ts';

export type Fetch = (request: Request) => Promise<Response>;

/** Serves chats over HTTP for `useChat`, and adds a stop. */
export function createChatRoutes(
  service: ChatService,
  { api, forwardHeaders }: { readonly api: string; readonly forwardHeaders: readonly string[] },
): Fetch {
  const { chat, access } = service;
  const routes = new Hono<ChatEnv>().basePath(api);
  const stream = (request: Request, who: Principal, open: OpenReply): Response =>
    streamEvents({ request, who }, open, {
      access,
      headers: { 'x-vercel-ai-ui-message-stream': 'v1' },
      terminator: 'data: [DONE]\n\n',
    });
  const admit = createAdmit(access);
  const warnOfUnknown = createUnknownWarning(chat);

  routes.post('/', admit('start'), async (c) => {
    const { who } = c.var;
    const headers = forwardHeaders.flatMap((name) => {
      const value = c.req.header(name);
      return value === undefined ? [] : [[name.toLowerCase(), value] as const];
    });
    const given = await readJson(c.req.raw, access);
    const sent = readSend(given, Object.fromEntries(headers));
    if ('given' in sent) return stream(c.req.raw, who, await answerCalls(who, sent, chat));
    await warnOfUnknown(who, sent, given);
    const { renamed, ...ref } = await sendMessage(chat, who, sent);
    const response = stream(c.req.raw, who, (signal) => streamReply(chat, ref, { signal, isAsking: true }));
    if (renamed !== undefined) response.headers.set(RENAMED, renamed);
    return response;
  });
  routes.get('/:chatId/stream', admit('read'), async (c) => {
    const { who } = c.var;
    const ref = await replyFor(who, { chatId: c.req.param('chatId'), last: c.req.header(LAST_MESSAGE) }, chat);
    if (ref === undefined) return c.body(null, 204);
    return stream(c.req.raw, who, (signal) => streamReply(chat, ref, { signal }));
  });
  routes.get('/:chatId/messages', admit('read'), async (c) => {
    const { messages, version, reply = '' } = await readView(chat, { who: c.var.who, chatId: c.req.param('chatId') });
    return c.json(messages, 200, { [VERSION]: `${version} ${encodeURIComponent(reply)}` });
  });
  routes.get('/', admit('read'), async (c) =>
    c.json(await listChats(chat, c.var.who, checked(c.req.query(), listRequest))),
  );
  routes.delete('/:chatId', admit('start'), async (c) => {
    const who = requireRights(c.var.who, 'cancel');
    const target = c.req.param('chatId');
    const isGone = await removeChat(chat, { who, chatId: target });
    const result = isGone ? 'erased' : 'incomplete';
    access.audit(who, { type: 'erase', tenant: who.tenant, target, result });
    if (isGone) return c.body(null, 204);
    return refuse(409, { code: 'live', message: 'A reply of this chat has not stopped yet; remove it again' });
  });
  return serveRoutes(routes, service, 'chat');
}

/** Who has sent a request. */
export interface ChatEnv {
  readonly Variables: { who: Principal };
}

/** The header in which a page sends who its user is, as the server has told it. */
const PRINCIPAL = 'whoa-principal';

/** The header with the version of a chat, and the message of its reply in progress. */
const VERSION = 'whoa-version';

/** The header with the id under which a message is kept, if another one had its id. */
const RENAMED = 'whoa-renamed';

const otherPrincipal = {
  code: 'other-principal',
  message: 'Another user has logged in since the page was opened, and nothing was done; open the page again',
};

/** Don't read anything of a request before its sender is known. */
export function createAdmit(access: Access): (right: Right) => MiddlewareHandler<ChatEnv> {
  return (right) => async (c, next) => {
    const who = await access.authorize(c.req.raw, right);
    if (who instanceof Response) return who;
    checked(c.req.param(), pathNames);
    const name = hashPrincipal(who);
    const expected = c.req.header(PRINCIPAL);
    if (expected !== undefined && expected !== name) return refuse(403, otherPrincipal);
    c.set('who', who);
    await next();
    c.res.headers.set(PRINCIPAL, name);
    return undefined;
  };
}

/**
 * Adds the routes that all protocols over HTTP share: a stop, an approval and a watch. Errors become refusals. `via`: the protocol,
 * for cancel reasons.
 */
export function serveRoutes(routes: Hono<ChatEnv>, service: ChatService, via: string): Fetch {
  const { chat, access, onError } = service;
  const admit = createAdmit(access);
  routes.post('/:chatId/stop', admit('cancel'), async (c) => {
    const { who } = c.var;
    const request = checked(await readJson(c.req.raw, access), stopRequest);
    const { runId, messageId, scope = 'foreground' } = request;
    const chatId = c.req.param('chatId');
    const receipt = await stopChat(chat, who, { ...request, chatId, via });
    const target = runId ?? messageId ?? chatId;
    access.audit(who, { type: 'cancel', tenant: who.tenant, target, result: receipt.result, scope });
    return c.json(receipt, receipt.rolledBack === false ? 409 : 200);
  });
  routes.post('/:chatId/approve', admit('approve'), async (c) => {
    const answer = checked(await readJson(c.req.raw, access), approveRequest);
    return c.json({ result: await answerQuestion(chat, c.var.who, { ...answer, chatId: c.req.param('chatId') }) });
  });
  routes.get('/:chatId/watch', admit('read'), (c) => {
    const { who } = c.var;
    const ref = { who, chatId: c.req.param('chatId') };
    const { after } = c.req.query();
    const open = (signal: AbortSignal) => watchChat(chat, ref, { after, signal });
    // Pages that are merely open take no reply's place.
    return streamEvents({ request: c.req.raw, who }, open, { access, kind: 'watch ' });
  });
  routes.onError((error) => responseTo(error, onError));
  routes.notFound(() => refuse(404, { code: 'unknown-route', message: 'There is no such route of a chat' }));
  return (request) => {
    service.begin();
    return withCors(access, request, () => routes.fetch(request));
  };
}
