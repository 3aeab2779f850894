import { settings } from '@whoa/core/internal';
import { isFinalStatus, type TaskRecord, type TaskRef } from '@whoa/tasks';
import type { UIMessage } from 'ai';
import { Hono } from 'hono';
import { lacksRight, may } from '../../http/access/access.ts';
import type { Principal } from '../../http/access/principal.ts';
import { HttpError } from '../../http/http-error.ts';
import { streamEvents } from '../../http/sse.ts';
import { readQuestions } from '../../tasks/read-questions.ts';
import type { Answers, PageAnswer } from '../answers.ts';
import { continueMessage, sendMessage, streamReply } from '../chat.ts';
import { findAsking, isRun, readMessages } from '../chat-history.ts';
import { approveRequest, checked, notFromUser, readJson } from '../chat-request.ts';
import { type ChatEnv, createAdmit, type Fetch, serveRoutes } from '../chat-routes.ts';
import { findActive, findRun, renameReply } from '../chat-runs.ts';
import {
  CHAT_RULES,
  type ChatService,
  type ChatServiceOptions,
  createChatService,
  PATH_RULE,
} from '../chat-service.ts';
import type { Chat, ChatAnswer } from '../chat-types.ts';
import { answerQuestion, notAsked } from '../questions.ts';
import type { ChatTools } from '../reply-options.ts';
import { stopChat } from '../stop-run.ts';
import { isCallPart } from '../ui/call-parts.ts';
import { type AgUiMessage, type RunInput, runInput, toAgUiMessages } from './ag-ui-messages.ts';
import { AgUiTranslator } from './ag-ui-translator.ts';

/** Options of a handler that serves chats to AG-UI clients. */
export interface AgUiHandlerOptions<Tools extends ChatTools> extends ChatServiceOptions<Tools> {
  /** Where the handler is mounted. Defaults to `/api/ag-ui`. */
  readonly api?: string | undefined;
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
 * @throws {@link SettingsError} when an option is invalid.
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
  given: AgUiHandlerOptions<Tools>,
): AgUiHandler {
  const options = settings.readSettings<AgUiHandlerOptions<Tools>>(given, { ...CHAT_RULES, api: PATH_RULE });
  const service = createChatService(options);
  const fetch = createRoutes(service, options.api ?? '/api/ag-ui');
  return { fetch, GET: fetch, POST: fetch, [Symbol.asyncDispose]: () => service[Symbol.asyncDispose]() };
}

/** A run to stream. */
interface RunReading {
  readonly task: TaskRecord;
  readonly before: readonly AgUiMessage[];
  readonly isJoining?: boolean;
  /** The questions that it answers. */
  readonly resumed?: readonly string[];
}

function createRoutes(service: ChatService, api: string): Fetch {
  const { chat, access } = service;
  const routes = new Hono<ChatEnv>().basePath(api);
  const admit = createAdmit(access);
  const stream = async (request: Request, who: Principal, reading: RunReading): Promise<Response> => {
    const translator = await createTranslator(chat, reading);
    const { tenant, id } = reading.task;
    const open = (signal: AbortSignal) => translator.translate(streamReply(chat, { tenant, id }, { signal }));
    return streamEvents({ request, who }, open, { access });
  };

  routes.post('/', admit('start'), async (c) => {
    const input = checked(await readJson(c.req.raw, access), runInput);
    return stream(c.req.raw, c.var.who, await acceptRun(c.var.who, input, chat));
  });
  routes.get('/:threadId/connect', admit('read'), async (c) => {
    const { who } = c.var;
    const ref = await findActive(chat, who, c.req.param('threadId'));
    const task = ref && (await chat.store.get(ref));
    if (task === undefined) return c.body(null, 204);
    const before = toAgUiMessages(await readMessages(chat, { who, chatId: c.req.param('threadId') }));
    return stream(c.req.raw, who, { task, before, isJoining: true });
  });
  return serveRoutes(routes, service, 'ag-ui');
}

async function createTranslator(chat: Chat, reading: RunReading): Promise<AgUiTranslator> {
  const { task, before, isJoining = false, resumed = [] } = reading;
  const { tenant, id, key = id, conversation = id } = task;
  const questions = [...(await readQuestions(chat.store, task)).values()];
  const answered = questions.filter(({ isAnswered }) => isAnswered || isFinalStatus(task.status));
  return new AgUiTranslator({
    threadId: conversation,
    runId: key,
    taskId: id,
    before,
    isJoining,
    answered: new Set(answered.map((question) => question.id)),
    resumed: new Set(resumed),
    usage: async () => (await chat.store.get({ tenant, id }))?.outcome?.usage,
  });
}

/** Starts the run that a request asks for, or answers the questions that interrupted one. */
async function acceptRun(who: Principal, input: RunInput, chat: Chat): Promise<RunReading> {
  const { before, results } = input;
  if (results.length > 0) return { ...(await addResults(who, input, chat)), before };
  if (!(await isResume(who, input, chat))) return { task: await startRun(who, input, chat), before };
  if (!may(who, 'approve')) throw new HttpError(403, lacksRight('approve'));
  const task = { ...(await resumeRun(who, input, chat)), key: input.runId };
  const resumed = input.resume.map(({ interruptId }) => interruptId);
  return { task, before: toAgUiMessages(await readMessages(chat, { who, chatId: input.threadId })), resumed };
}

/** Returns whether a request answers questions. A user who drops them and sends a new message wants a new run. */
async function isResume(who: Principal, input: RunInput, chat: Chat): Promise<boolean> {
  const { resume } = input;
  if (resume.length === 0) return false;
  const isNew = input.message !== undefined && !(await isKnown(who, input, chat));
  const isGivenUp = resume.every(({ status }) => status === 'cancelled');
  if (isNew && !isGivenUp) {
    const message =
      'resume: send answers without a new message; send the message when the run has ended, or cancel the questions';
    throw new HttpError(400, { code: 'invalid', message });
  }
  return !isNew;
}

async function isKnown(who: Principal, { threadId, message }: RunInput, chat: Chat): Promise<boolean> {
  return (await readMessages(chat, { who, chatId: threadId })).some(
    ({ id, role }) => id === message?.id && role === 'user',
  );
}

/** Starts the run of a request. Repeating the request returns the same run. */
async function startRun(who: Principal, input: RunInput, chat: Chat): Promise<TaskRecord> {
  const { threadId: chatId, runId, message } = input;
  const known = await findRun(chat, who, { chatId, runId });
  if (known !== undefined && (isRun(known) || message === undefined)) return known;
  if (message === undefined) throw notFromUser();
  // A message that was already replied to gets a new reply, and everything after it is removed.
  const ref = await sendMessage(chat, who, { chatId, runId, message, regenerate: await isKnown(who, input, chat) });
  return (await chat.store.get(ref))!;
}

/**
 * Answers the questions that interrupted a run. The reply continues under another name. Repeating it changes nothing.
 */
async function resumeRun(who: Principal, input: RunInput, chat: Chat): Promise<TaskRecord> {
  const { threadId: chatId, runId } = input;
  const found = await findRun(chat, who, { chatId, runId });
  const known = found && isRun(found) ? found : undefined;
  const active = known ?? (await findActive(chat, who, chatId));
  const { resume, results } = await splitResults(input, active, chat);
  if (resume.length === 0) return (await addResults(who, { ...input, results }, chat)).task;
  const approvals = resume.map(({ interruptId: approvalId, status, payload }) => {
    const answer = status === 'resolved' ? payload : { approved: false };
    return checked({ ...(answer as object), approvalId }, approveRequest);
  });
  // The turn of the application's own loop has ended with the question.
  const asking = known ? undefined : await findAsking(chat, { who, chatId }, approvals[0]!.approvalId);
  if (asking !== undefined) {
    const { ref } = await continueMessage(chat, who, { chatId, runId, given: toAnswers(asking, approvals), steps: 0 });
    if (ref === undefined) throw notAsked();
    return (await chat.store.get(ref))!;
  }
  if (active === undefined) throw notAsked();
  // It was stopped under this name before.
  if (known === undefined && (await renameReply(chat, active, { chatId, runId })))
    await stopChat(chat, who, { chatId, messageId: active.id, via: 'ag-ui' });
  else if (known === undefined || !isFinalStatus(known.status))
    for (const approval of approvals) await answerQuestion(chat, who, { ...approval, chatId });
  if (results.length > 0) await addResults(who, { ...input, results }, chat);
  return (await chat.store.get(active))!;
}

/** Separates approvals from answers that are results of calls. */
async function splitResults({ resume }: RunInput, ref: TaskRef | undefined, chat: Chat) {
  const questions = ref && (await readQuestions(chat.store, ref));
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

/** Converts approvals to answers about the calls of a message that waits for them. */
function toAnswers(asking: UIMessage, approvals: readonly Omit<ChatAnswer, 'chatId'>[]): Answers {
  const calls = asking.parts.filter(isCallPart);
  const answers = approvals.map(({ approvalId, decision, why }): PageAnswer => {
    const call = calls.find(({ approval }) => approval?.id === approvalId);
    if (call === undefined) throw notAsked();
    const approved = decision === 'yes' || decision === 'always';
    return { toolCallId: call.toolCallId, approvalId, approved, ...(why !== undefined && { reason: why }) };
  });
  return { type: 'answers', messageId: asking.id, answers };
}

/** Answers questions of the reply in progress with results of calls. The reply continues under another name. */
async function addResults(
  who: Principal,
  { threadId: chatId, runId, results }: RunInput,
  chat: Chat,
): Promise<{ readonly task: TaskRecord; readonly resumed: readonly string[] }> {
  const found = await findRun(chat, who, { chatId, runId });
  const ref = found && isRun(found) ? found : await findActive(chat, who, chatId);
  if (ref === undefined) throw notAsked();
  const given = { type: 'answers', messageId: ref.id, answers: results } as const;
  const { ref: asked } = await continueMessage(chat, who, { chatId, runId, given, steps: 0 });
  if (asked === undefined) throw notAsked();
  if (found === undefined && (await renameReply(chat, ref, { chatId, runId })))
    await stopChat(chat, who, { chatId, messageId: ref.id, via: 'ag-ui' });
  const answered = new Set(results.map(({ toolCallId }) => toolCallId));
  const questions = [...(await readQuestions(chat.store, ref)).values()].filter(({ callId }) => answered.has(callId));
  return { task: { ...(await chat.store.get(ref))!, key: runId }, resumed: questions.map(({ id }) => id) };
}
