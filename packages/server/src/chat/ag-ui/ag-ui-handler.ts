import { isFinalStatus, type TaskRecord, type TaskRef } from '@whoa/tasks';
import type { UIMessage } from 'ai';
import { Hono } from 'hono';
import { may, refuseRight } from '../../http/access/access.ts';
import type { Principal } from '../../http/access/principal.ts';
import { HttpError } from '../../http/http-error.ts';
import { streamEvents } from '../../http/sse.ts';
import type { PageAnswer } from '../answers.ts';
import type { Chat } from '../chat.ts';
import { isRun } from '../chat-history.ts';
import {
  type ApproveRequest,
  answerQuestion,
  approveRequest,
  checked,
  notAsked,
  readJsonBody,
  takeAnswers,
} from '../chat-request.ts';
import { createAdmit, shareRoutes } from '../chat-routes.ts';
import { type ChatService, type ChatServiceOptions, createChatService } from '../chat-service.ts';
import type { ChatTools } from '../reply-options.ts';
import { isCallPart } from '../ui/call-parts.ts';
import type { AgUiMessage } from './ag-ui-messages.ts';
import { type RunInput, runInput, toAgUiMessages, toPageAnswer, toUiMessage } from './ag-ui-messages.ts';
import { AgUiTranslator } from './ag-ui-translator.ts';

/** Options of a handler that serves chats to AG-UI clients. */
export interface AgUiHandlerOptions<Tools extends ChatTools> extends ChatServiceOptions<Tools> {
  /** Where the handler is mounted. Defaults to `/api/ag-ui`. */
  readonly api?: string;
}

/** Spread `GET` and `POST` into a route file, or pass `fetch` to a server. Dispose it to hand unfinished runs on. */
export interface AgUiHandler extends AsyncDisposable {
  /** Handles a request. */
  readonly fetch: (request: Request) => Promise<Response>;
  /** Handles GET requests, for frameworks with one function per method. */
  readonly GET: (request: Request) => Promise<Response>;
  /** Handles POST requests, for frameworks with one function per method. */
  readonly POST: (request: Request) => Promise<Response>;
}

/**
 * Serves an agent, or your own loop, to AG-UI clients, with a stop that stops the run: a stopped run ends with
 * `RUN_FINISHED` and the outcome `cancelled`.
 *
 * @returns The handlers `GET` and `POST`, and `fetch` for both.
 *
 * @example
 * ```ts
 * import { createAgUiHandler } from '@whoa/server';
 *
 * export const { GET, POST } = createAgUiHandler({ store, authenticate: () => 'ada', agent });
 * // In the page: new HttpAgent({ url: '/api/ag-ui', threadId }).runAgent();
 * ```
 */
export function createAgUiHandler<Tools extends ChatTools = Record<never, never>>(
  options: AgUiHandlerOptions<Tools>,
): AgUiHandler {
  const service = createChatService(options);
  const routes = createRoutes(service, options.api ?? '/api/ag-ui');
  const fetch = async (request: Request): Promise<Response> => {
    service.begin();
    return routes.fetch(request);
  };
  return { fetch, GET: fetch, POST: fetch, [Symbol.asyncDispose]: () => service[Symbol.asyncDispose]() };
}

function createRoutes(service: ChatService, api: string): Hono {
  const { chat, access, onError } = service;
  const routes = new Hono().basePath(api);
  const admit = createAdmit(access);

  routes.post('/', (c) =>
    admit(c, 'start', async (who) => {
      const input = await readJsonBody(c.req.raw, runInput, access);
      const request = c.req.raw;
      const results = findToolResults(input);
      if (results.length > 0) {
        const { task, resumed } = await addResults(who, { input, results }, service);
        const before = input.messages as unknown as readonly AgUiMessage[];
        return streamRun({ request, who, task, before, isJoining: false, resumed }, service);
      }
      if (!(await isResume(who, input, chat))) {
        const task = await startRun(who, input, service);
        const before = input.messages as unknown as readonly AgUiMessage[];
        return streamRun({ request, who, task, before, isJoining: false }, service);
      }
      if (!may(who, 'approve')) return refuseRight('approve');
      const task = { ...(await resumeRun(who, input, service)), key: input.runId };
      const before = toAgUiMessages(await chat.messages(who, input.threadId));
      const resumed = input.resume.map(({ interruptId }) => interruptId);
      return streamRun({ request, who, task, before, isJoining: false, resumed }, service);
    }),
  );
  routes.get('/:threadId/connect', (c) =>
    admit(c, 'read', async (who) => {
      const ref = await chat.active(who, c.req.param('threadId'));
      const task = ref && (await chat.task(ref));
      if (task === undefined) return c.body(null, 204);
      const before = toAgUiMessages(await chat.messages(who, c.req.param('threadId')));
      return streamRun({ request: c.req.raw, who, task, before, isJoining: true }, service);
    }),
  );
  return shareRoutes(routes, { chat, access, onError, via: 'ag-ui' });
}

/** Returns whether a request answers questions. A user who drops them and sends a new message wants a new run. */
async function isResume(who: Principal, { threadId, messages, resume }: RunInput, chat: Chat): Promise<boolean> {
  if (resume.length === 0) return false;
  const last = messages.at(-1);
  const isNew = last?.role === 'user' && !(await isKnown(who, { threadId, id: last.id }, chat));
  const isGivenUp = resume.every(({ status }) => status === 'cancelled');
  if (isNew && !isGivenUp) {
    const message =
      'resume: send answers without a new message; send the message when the run has ended, or cancel the questions';
    throw new HttpError(400, { code: 'invalid', message });
  }
  return !isNew;
}

async function isKnown(who: Principal, message: { threadId: string; id: string }, chat: Chat): Promise<boolean> {
  return (await chat.messages(who, message.threadId)).some(({ id, role }) => id === message.id && role === 'user');
}

/** Starts the run of a request. Repeating the request returns the same run. */
async function startRun(who: Principal, input: RunInput, { chat }: ChatService): Promise<TaskRecord> {
  const { threadId, runId, messages } = input;
  const known = await chat.find(who, { chatId: threadId, runId });
  if (known !== undefined) return known;
  const last = messages.at(-1);
  if (last?.role !== 'user') {
    const why = 'messages: the last one must be from the user; the server stores the others';
    throw new HttpError(400, { code: 'invalid', message: why });
  }
  // A message that was already replied to gets a new reply, and everything after it is removed.
  const regenerate = await isKnown(who, { threadId, id: last.id }, chat);
  const ref = await chat.send(who, { chatId: threadId, runId, message: toUiMessage(last), regenerate });
  return (await chat.task(ref))!;
}

/**
 * Answers the questions that interrupted a run. The reply continues under another name. Repeating it changes nothing.
 */
async function resumeRun(who: Principal, input: RunInput, service: ChatService): Promise<TaskRecord> {
  const { chat } = service;
  const { threadId: chatId, runId } = input;
  const found = await chat.find(who, { chatId, runId });
  const known = found && isRun(found) ? found : undefined;
  const { resume, results } = await splitResults(input, known ?? (await chat.active(who, chatId)), chat);
  if (resume.length === 0) return (await addResults(who, { input, results }, service)).task;
  const answers = resume.map(({ interruptId: approvalId, status, payload }) => {
    const answer = status === 'resolved' ? payload : { approved: false };
    return { ...checked({ ...(answer as object), approvalId }, approveRequest), chatId };
  });
  const asking = known ? undefined : await chat.findAsking({ who, chatId }, answers[0]!.approvalId);
  if (asking !== undefined) return continueRun(who, { asking, answers, runId }, service);
  const ref = known ?? (await chat.active(who, chatId));
  if (ref === undefined) throw notAsked();
  // It was stopped under this name before.
  if (known === undefined && (await chat.rename(ref, { chatId, runId })))
    await chat.stop(who, { chatId, messageId: ref.id, via: 'ag-ui' });
  else if (known === undefined || !isFinalStatus(known.status))
    for (const answer of answers) await answerQuestion(who, answer, { chat });
  if (results.length > 0) await addResults(who, { input, results }, service);
  return (await chat.task(ref))!;
}

/** Returns the results of calls that ran in the page: the tool messages at the end. */
function findToolResults({ messages, resume }: RunInput): PageAnswer[] {
  const last = messages.findLastIndex(({ role }) => role !== 'tool');
  return resume.length > 0 ? [] : messages.slice(last + 1).map(toPageAnswer);
}

/** Separates approvals from answers that are results of calls. */
async function splitResults({ resume }: RunInput, ref: TaskRef | undefined, chat: Chat) {
  const questions = ref && (await chat.questions(ref));
  const isResult = ({ interruptId }: RunInput['resume'][number]): boolean =>
    (questions?.get(interruptId)?.kind ?? 'approve') !== 'approve';
  const results = resume.filter(isResult).map(({ interruptId, status, payload }): PageAnswer => {
    const { callId: toolCallId } = questions!.get(interruptId)!;
    return status === 'resolved'
      ? { toolCallId, output: payload }
      : { toolCallId, errorText: 'the user gave no answer' };
  });
  return { resume: resume.filter((one) => !isResult(one)), results };
}

/** Answers questions of the reply in progress with results of calls. The reply continues under another name. */
async function addResults(
  who: Principal,
  { input, results }: { readonly input: RunInput; readonly results: readonly PageAnswer[] },
  service: ChatService,
): Promise<{ readonly task: TaskRecord; readonly resumed: readonly string[] }> {
  const { chat } = service;
  const { threadId: chatId, runId } = input;
  const found = await chat.find(who, { chatId, runId });
  const ref = found && isRun(found) ? found : await chat.active(who, chatId);
  if (ref === undefined) throw notAsked();
  const given = { type: 'answers', messageId: ref.id, answers: results } as const;
  const { ref: asked } = await takeAnswers(who, { chatId, runId, given, steps: 0 }, service);
  if (asked === undefined) throw notAsked();
  if (found === undefined && (await chat.rename(ref, { chatId, runId })))
    await chat.stop(who, { chatId, messageId: ref.id, via: 'ag-ui' });
  const answered = new Set(results.map(({ toolCallId }) => toolCallId));
  const questions = [...(await chat.questions(ref))].filter(([, { callId }]) => answered.has(callId));
  return { task: { ...(await chat.task(ref))!, key: runId }, resumed: questions.map(([id]) => id) };
}

interface Resumed {
  /** The message whose calls wait. The turn of the application's own loop has ended. */
  readonly asking: UIMessage;
  readonly answers: readonly (ApproveRequest & { readonly chatId: string })[];
  readonly runId: string;
}

async function continueRun(
  who: Principal,
  { asking, answers, runId }: Resumed,
  service: ChatService,
): Promise<TaskRecord> {
  const calls = asking.parts.filter(isCallPart);
  const pageAnswers = answers.map(({ approvalId, approved, why }): PageAnswer => {
    const call = calls.find(({ approval }) => approval?.id === approvalId);
    if (call === undefined) throw notAsked();
    return { toolCallId: call.toolCallId, approvalId, approved, ...(why != null && { reason: why }) };
  });
  const given = { type: 'answers', messageId: asking.id, answers: pageAnswers } as const;
  const { ref } = await takeAnswers(who, { chatId: answers[0]!.chatId, runId, given, steps: 0 }, service);
  if (ref === undefined) throw notAsked();
  return (await service.chat.task(ref))!;
}

interface RunReading {
  readonly request: Request;
  readonly who: Principal;
  readonly task: TaskRecord;
  readonly before: readonly AgUiMessage[];
  readonly isJoining: boolean;
  /** The questions that it answers. */
  readonly resumed?: readonly string[];
}

async function streamRun(reading: RunReading, { chat, access }: ChatService): Promise<Response> {
  const { request, who, task, before, isJoining, resumed = [] } = reading;
  const { tenant, id, key = id, conversation = id } = task;
  const ref = { tenant, id };
  const questions = [...(await chat.questions(ref))];
  const answered = questions
    .filter(([, { isAnswered }]) => isAnswered || isFinalStatus(task.status))
    .map(([name]) => name);
  const translator = new AgUiTranslator({
    threadId: conversation,
    runId: key,
    taskId: id,
    before,
    isJoining,
    answered: new Set(answered),
    resumed: new Set(resumed),
    usage: async () => (await chat.task(ref))?.outcome?.usage,
  });
  return streamEvents({ request, who }, (signal) => translator.translate(chat.stream(ref, signal)), { access });
}
