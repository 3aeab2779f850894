import type { AppContext, CancelReasonInit, Json, Policy } from '@whoa/core';
import {
  type ConversationRef,
  followTask,
  isFinalStatus,
  type NewTask,
  type TaskRecord,
  type TaskRef,
} from '@whoa/tasks';
import { cancelBackground } from '@whoa/tasks/internal';
import type { UIMessageChunk } from 'ai';
import { lacksRight, may } from '../http/access/access.ts';
import type { Principal } from '../http/access/principal.ts';
import { HttpError } from '../http/http-error.ts';
import { keepsQuestions } from '../tasks/answering.ts';
import { findAnswers, findCounting } from './answers.ts';
import {
  type ChatRef,
  cutHistory,
  findKey,
  findMessage,
  findReplyId,
  getMessageId,
  isRun,
  NEVER,
  readContinued,
  readMessages,
  requireCreated,
  requireSize,
  stopWaiting,
} from './chat-history.ts';
import type { Chat, ChatAnswers, ChatMessage, ChatStop, ChatStopReceipt, Continued } from './chat-types.ts';
import { HISTORY_AGENT } from './history-work.ts';
import { answerReply, areOpen, checkAnswers } from './questions.ts';
import { rollBack } from './roll-back.ts';
import { isRepeated, isStale } from './stale-answers.ts';
import type { ReplyEvent } from './ui/chunk-writer.ts';
import { toUserMessage } from './ui/ui-messages.ts';
import { UiTranslator } from './ui/ui-translator.ts';
import { type OpenAnswer, type ShownQuestions, stopReply, waitForAnswer } from './waiting-reply.ts';

/** The page's name for a run, as the store finds its task, and the task that has the name from now on. */
type RunName = ConversationRef & { readonly key: string; readonly reply: string | null };

/** Tasks that only change the history, or hold a name, may be newer than the last reply. */
const RECENT_TASKS = 5;

/** Stores a message and starts a reply. A message that was stopped before it arrived gets no reply. */
export async function sendMessage(
  chat: Chat,
  who: Principal,
  { chatId, message, runId, regenerate = false, sent }: ChatMessage,
): Promise<TaskRef> {
  const { isReply, policy, history } = chat;
  const input = requireSize(isReply ? message : toUserMessage(message));
  // Before anything is stored. The task itself removes what is replied to again, in the same step as it saves the message.
  await history?.read({ chatId, principal: who });
  // The newer message decides about the reply in progress, and then waits until the history is cut.
  if (regenerate && history === undefined) await cutHistory(chat, { who, chatId }, message.id);
  const key = runId ?? (regenerate ? undefined : await findKey(chat, { who, chatId }, message));
  const about = { chatId, runId: key, sent, regenerate: regenerate && history !== undefined };
  const effective = regenerate ? (history ? 'replace' : 'queue') : policy;
  const keeps = await keepsQuestions(who, { ...who, conversation: chatId, policy: effective }, chat);
  return start(chat, { ...taskFor(chat, who, { ...about, input }), keepsQuestions: keeps }, effective);
}

/** Continues a message with what a page has answered, and records who did. */
export async function continueMessage(
  chat: Chat,
  who: Principal,
  { given, ...request }: ChatAnswers,
): Promise<Continued> {
  const isApproval = given.answers.some((answer) => 'approvalId' in answer);
  if (isApproval && !may(who, 'approve')) throw new HttpError(403, lacksRight('approve'));
  const { chatId } = request;
  if (!chat.isReply) return answerReply(chat, who, { chatId, given });
  const active = await findContinuation(chat, { tenant: who.tenant, chatId }, given.messageId);
  if (active !== undefined) return { ref: active, isOwn: isRepeated(findAnswers(active)!, given) };
  const message = await findMessage(chat, { who, chatId }, given.messageId);
  const counting = message ? findCounting(message, given, chat.isElsewhere) : [];
  if (counting.length === 0) {
    const isOver = message !== undefined && isStale(message, given);
    const shown = isOver ? await readMessages(chat, { who, chatId }) : [];
    return { isOwn: false, message: shown.find(({ id }) => id === given.messageId) };
  }
  const answers = counting.map(({ answer }) => answer);
  const { startedBy, audit } = await checkAnswers(chat, { who, chatId }, { message: message!, answers });
  const input = requireSize({ ...given, answers });
  const ref = await start(chat, { ...taskFor(chat, who, { ...request, input }), startedBy }, 'queue');
  audit('accepted');
  return { ref, isOwn: true };
}

function taskFor(
  { agent, isReply }: Chat,
  who: Principal,
  { chatId, runId, sent, regenerate, input }: Omit<ChatMessage, 'message'> & { readonly input: Json },
): NewTask {
  const task = { tenant: who.tenant, agent, conversation: chatId, input, startedBy: who.name || undefined };
  const context = { ...sent, ...(regenerate && { regenerate }), principal: who } as unknown as AppContext;
  return { ...task, ...(runId !== undefined && { key: runId }), ...(isReply && { context }) };
}

/** Returns the task in progress that continues a message. */
async function findContinuation(
  chat: Chat,
  { tenant, chatId }: { readonly tenant: string; readonly chatId: string },
  messageId: string,
): Promise<TaskRecord | undefined> {
  const active = await findActive(chat, { tenant }, chatId);
  const task = active && (await chat.store.get(active));
  return task !== undefined && findAnswers(task)?.messageId === messageId ? task : undefined;
}

/** Returns the reply in progress, if there is one. */
export async function findActive(
  { store }: Chat,
  { tenant }: Pick<Principal, 'tenant'>,
  chatId: string,
): Promise<TaskRef | undefined> {
  const record = await store.conversation({ tenant, conversation: chatId });
  const id = record?.current;
  if (id === undefined) return undefined;
  const task = await store.get({ tenant, id });
  return task === undefined || task.agent === HISTORY_AGENT || isFinalStatus(task.status) ? undefined : { tenant, id };
}

/**
 * Returns the reply to stream to a page that shows this message last: the one in progress, or one that ended before
 * the page asked, if the page has not seen its end.
 */
export async function findMissed(
  chat: Chat,
  { who, chatId }: ChatRef,
  last: { readonly id: string; readonly isPartial: boolean },
): Promise<TaskRef | undefined> {
  const active = await findActive(chat, who, chatId);
  if (active !== undefined) return active;
  const { store, agent } = chat;
  const { tenant } = who;
  const { tasks } = await store.list({ tenant, conversation: chatId, limit: RECENT_TASKS });
  const newest = tasks.find((task) => task.agent === agent && isRun(task));
  const task = newest && (await store.get(newest));
  if (task === undefined) return undefined;
  const asked = task.inputs.at(-1) as { id?: string } | undefined;
  const isMissed = last.id === (last.isPartial ? getMessageId(task) : asked?.id);
  return isMissed ? { tenant, id: task.id } : undefined;
}

/**
 * Streams a reply from its start. A reader that leaves stops nothing. A page that `isAsking` for the reply has the
 * message that is continued; to any other it is streamed whole.
 */
export async function* streamReply(
  chat: Chat,
  ref: TaskRef,
  { signal, isAsking = false }: { readonly signal: AbortSignal; readonly isAsking?: boolean },
): AsyncGenerator<UIMessageChunk, undefined> {
  const { store, describeError, isReply } = chat;
  const task = isReply ? await store.get(ref) : undefined;
  const translator = new UiTranslator(task ? getMessageId(task) : ref.id, { describeError });
  // The loop's own start has its metadata.
  if (!isReply || !isAsking) yield* translator.start();
  const continued = task && !isAsking ? await readContinued(chat, task) : undefined;
  yield* continued?.chunks ?? [];
  // It has its own answers, and pages of AI SDK 6 know no such chunk.
  const known = new Set(
    task && isAsking ? findAnswers(task)?.answers.map((one) => 'approvalId' in one && one.approvalId) : [],
  );
  for await (const seen of followTask<ReplyEvent>(store, ref, { signal })) {
    const chunks = seen.type === 'entry' ? translator.translate(seen.event) : translator.end(seen.task);
    if (seen.type === 'entry' && continued?.isWhole === true) continue;
    yield* chunks.filter((chunk) => chunk.type !== 'tool-approval-response' || !known.has(chunk.approvalId));
    // A page sends answers only when the stream has ended. Its answer continues the message.
    const { awaited } = translator;
    if (awaited.length === 0 || !(await areOpen(store, ref, awaited))) continue;
    yield* translator.pause();
    return undefined;
  }
  return undefined;
}

/** Opens a stream that yields once, when one of the questions that a page shows is answered or closed. */
export async function openAnswered(chat: Chat, who: Principal, asked: ShownQuestions): Promise<OpenAnswer | undefined> {
  const ref = chat.isReply ? undefined : await findRun(chat, who, asked);
  return ref && ((signal) => waitForAnswer(chat.store, { ref, questions: asked.questions }, signal));
}

/**
 * Gives a reply in progress another name, by which it can be found and stopped. Returns whether it was stopped under
 * this name before.
 */
export async function renameReply(
  chat: Chat,
  ref: TaskRef,
  { chatId, runId }: { readonly chatId: string; readonly runId: string },
): Promise<boolean> {
  const reason = { kind: 'merged', via: 'chat', message: `taken over by ${ref.id}` };
  const name = { tenant: ref.tenant, conversation: chatId, key: runId, reply: ref.id };
  if (await takeName(chat, name, reason)) return false;
  return (await findRun(chat, ref, { chatId, runId }))?.id !== ref.id;
}

/** Stops a reply, the chat's background tasks, or both, in any process. Messages and results are kept. */
export async function stopChat(chat: Chat, who: Principal, stop: ChatStop): Promise<ChatStopReceipt> {
  const { chatId, via, reason: message, scope = 'foreground' } = stop;
  const reason = { kind: 'user', by: who.name, via, ...(message !== undefined && { message }) };
  // Stop the reply first: once it is stopped, it starts no more background tasks.
  const receipt = scope === 'background' ? undefined : await stopRun(chat, { ...stop, who }, reason);
  if (scope === 'foreground') return receipt!;
  const answers = await cancelBackground(chat.store, { tenant: who.tenant, conversation: chatId }, reason);
  const answer = answers.find((one) => one === 'accepted') ?? answers[0] ?? 'idle';
  return { result: answer, ...receipt, background: answers.filter((one) => one === 'accepted').length };
}

async function stopRun(chat: Chat, stop: ChatStop & ChatRef, reason: CancelReasonInit): Promise<ChatStopReceipt> {
  const { who, chatId, runId, messageId } = stop;
  const { tenant } = who;
  const isNamed = runId !== undefined || messageId !== undefined;
  let task: TaskRef | undefined = isNamed ? await findRun(chat, who, stop) : await findActive(chat, who, chatId);
  if (task === undefined && runId !== undefined) {
    if (await takeName(chat, { tenant, conversation: chatId, key: runId, reply: null }, reason))
      return { ...(await stopWaiting(chat, { chatId, messageId, who }, reason)), result: 'recorded' };
    // Its message has arrived in between.
    task = await findRun(chat, who, stop);
  }
  const ref = task && { tenant, id: task.id };
  const isRead = runId !== undefined || stop.rollback === true;
  const receipt = ref ? await stopReply(chat, { who, chatId, ref, isRead }, reason) : { result: 'idle' as const };
  if (stop.rollback === true) return { ...receipt, ...(await rollBack(chat, { who, chatId, ref }, reason)) };
  const ended = ref && receipt.result === 'too-late' ? await chat.store.get(ref) : undefined;
  if (ref !== undefined && ended === undefined) return receipt;
  const waiting = { who, chatId, messageId: ended ? getMessageId(ended) : messageId };
  return { ...receipt, ...(await stopWaiting(chat, waiting, reason)) };
}

/** Finds a run of a chat by either of its names. */
export async function findRun(
  chat: Chat,
  { tenant }: Pick<Principal, 'tenant'>,
  { chatId, runId, messageId }: Pick<ChatStop, 'chatId' | 'runId' | 'messageId'>,
): Promise<TaskRecord | undefined> {
  const { store } = chat;
  const found = runId === undefined ? undefined : await store.find({ tenant, key: runId, conversation: chatId });
  // The id of a reply's message is the id of its task.
  const id = found === undefined ? messageId : findReplyId(found);
  const continued = found || id === undefined ? undefined : await findContinuation(chat, { tenant, chatId }, id);
  const task = continued ?? (id === undefined ? found : await store.get({ tenant, id }));
  return task?.conversation === chatId ? task : undefined;
}

/**
 * Takes the name of a run: the run is created and cancelled before it can start, so a message that arrives later finds it
 * ended. Returns whether the name was free.
 */
async function takeName(
  { store, agent }: Chat,
  { reply, ...name }: RunName,
  reason: CancelReasonInit,
): Promise<boolean> {
  const run = { ...name, agent, input: reply, notBefore: NEVER };
  const { result, task } = requireCreated(await store.create(run, { policy: 'queue' }));
  if (result === 'created') await store.cancel(task, reason, { mode: 'now' });
  return result === 'created';
}

async function start(chat: Chat, task: NewTask, policy: Policy): Promise<TaskRef> {
  const { store, runner, isRemote } = chat;
  if (!isRemote) {
    const { tenant, id, response } = await runner.start(task, { policy });
    chat.waitUntil?.(response.catch(() => {}));
    return { tenant, id };
  }
  const { id } = requireCreated(await store.create(task, { policy })).task;
  return { tenant: task.tenant, id };
}
