import type { AppContext, Json, Policy } from '@whoa/core';
import { type FollowEvent, followTask, type NewTask, type TaskRef } from '@whoa/tasks';
import { readJournal } from '@whoa/tasks/internal';
import type { UIMessageChunk } from 'ai';
import { lacksRight, may } from '../http/access/access.ts';
import type { Principal } from '../http/access/principal.ts';
import { HttpError } from '../http/http-error.ts';
import { keepsQuestions } from '../tasks/answering.ts';
import { findAnswers, findCounting, type PageAnswer } from './answers.ts';
import {
  type ChatRef,
  cutHistory,
  findKey,
  findMessage,
  getMessageId,
  isRun,
  keepMessage,
  readContinued,
  readMessages,
  requireCreated,
  requireSize,
} from './chat-history.ts';
import { findContinuations, findRun, findShown } from './chat-runs.ts';
import type { Chat, ChatAnswers, ChatMessage, Continued } from './chat-types.ts';
import { findNewId, withOwnId } from './message-ids.ts';
import { answerReply, areOpen, checkAnswers } from './questions.ts';
import { withoutServerParts, withReplacedCalls } from './replaced-calls.ts';
import { isRepeated, isStale } from './stale-answers.ts';
import type { ReplyEvent } from './ui/chunk-writer.ts';
import { toUserMessage } from './ui/ui-messages.ts';
import { UiTranslator } from './ui/ui-translator.ts';

/** Tasks that only change the history, or hold a name, may be newer than the last reply. */
const RECENT_TASKS = 5;

/** Stores a message and starts a reply. A message that was stopped before it arrived gets no reply. */
export async function sendMessage(
  chat: Chat,
  who: Principal,
  given: ChatMessage,
): Promise<TaskRef & { readonly renamed?: string | undefined }> {
  const { chatId, runId, sent } = given;
  const known = runId === undefined ? undefined : await findRun(chat, who, { chatId, runId });
  // It was sent before.
  if (known !== undefined && isRun(known)) return { ...known, renamed: findNewId(known.inputs[0]) };
  const own = await withOwnId(chat, who, { ...given, isStopped: known !== undefined });
  const { regenerate = false } = own;
  // A page cannot say what calls have done.
  const message = withoutServerParts(own.message);
  const renamed = findNewId(message);
  const { isReply, policy, history } = chat;
  const input = requireSize(isReply ? message : toUserMessage(message));
  if (known !== undefined) {
    await keepMessage(chat, { who, chatId }, { message, regenerate, key: `kept:${runId}` });
    return { ...known, renamed };
  }
  // With `history` the task itself removes what is replied to again, in the same step as it saves the message.
  // The newer message decides about the reply in progress, and then waits until the history is cut.
  const cut =
    regenerate && history === undefined
      ? await cutHistory(chat, { who, chatId }, { from: message.id, key: runId && `cut:${runId}` })
      : undefined;
  const key = runId ?? (regenerate ? undefined : await findKey(chat, { who, chatId }, message));
  const about = { chatId, runId: key, sent, regenerate: regenerate && history !== undefined };
  const effective = regenerate ? (history ? 'replace' : 'queue') : policy;
  const keeps = await keepsQuestions(who, { ...who, conversation: chatId, policy: effective }, chat);
  const asked = cut && isReply ? (withReplacedCalls(message, cut.replaced) as unknown as Json) : input;
  const task = { ...taskFor(chat, who, { ...about, input: asked }), keepsQuestions: keeps };
  return { ...(await start(chat, task, effective)), renamed };
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
  const known = await findRun(chat, who, request);
  // They were sent before.
  if (known !== undefined && isRun(known)) return { ref: known, isOwn: true };
  const going = await findContinuations(chat, { tenant: who.tenant, chatId }, given.messageId);
  const taken = going.flatMap((task) => findAnswers(task)!.answers);
  const message = await findMessage(chat, { who, chatId }, given.messageId);
  const isTaken = ({ toolCallId }: PageAnswer): boolean => taken.some((one) => one.toolCallId === toolCallId);
  // Those that others continue the message with count already. The rest continue it next.
  const counting = (message ? findCounting(message, given, chat.isElsewhere) : []).filter(
    ({ answer }) => !isTaken(answer),
  );
  const last = going.at(-1);
  if (counting.length === 0 && last !== undefined)
    return { ref: last, isOwn: isRepeated({ ...given, answers: taken }, given) };
  if (counting.length === 0) {
    const isOver = message !== undefined && isStale(message, given);
    const shown = isOver ? await readMessages(chat, { who, chatId }) : [];
    return { isOwn: false, message: shown.find(({ id }) => id === given.messageId) };
  }
  const answers = counting.map(({ answer }) => answer);
  const { startedBy, audit } = await checkAnswers(chat, { who, chatId }, { message: message!, answers });
  const input = requireSize({ ...given, answers });
  const sent = await sentWith(chat, { tenant: who.tenant, id: given.messageId }, request.sent);
  // A result that comes after its stop is noted under another name.
  const runId = known === undefined ? request.runId : `late:${request.runId}`;
  const ref = await start(chat, { ...taskFor(chat, who, { ...request, runId, sent, input }), startedBy }, 'queue');
  audit('accepted');
  return { ref, isOwn: true };
}

/** Returns what was sent with answers. If that is nothing, what was sent with the message still applies. */
async function sentWith({ store }: Chat, message: TaskRef, sent: ChatMessage['sent']): Promise<ChatMessage['sent']> {
  if (Object.keys(sent?.body ?? {}).length > 0) return sent;
  const { body } = ((await store.get(message))?.context ?? {}) as NonNullable<ChatMessage['sent']>;
  return { ...sent, ...(body && { body }) };
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

/**
 * Returns the reply to stream to a page that shows this message last: the one in progress, or one that ended before
 * the page asked, if the page has not seen its end.
 */
export async function findMissed(
  chat: Chat,
  { who, chatId }: ChatRef,
  last: { readonly id: string; readonly isPartial: boolean },
): Promise<TaskRef | undefined> {
  const active = await findShown(chat, { tenant: who.tenant, chatId });
  if (active !== undefined) return (await findContinuations(chat, { ...who, chatId }, last.id)).at(-1) ?? active;
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
  let continued: Awaited<ReturnType<typeof readContinued>>;
  const begin = async (): Promise<readonly UIMessageChunk[]> => {
    continued = task && !isAsking ? await readContinued(chat, task) : undefined;
    // The loop's own start has its metadata.
    return [...(isReply && isAsking ? [] : translator.start()), ...(continued?.chunks ?? [])];
  };
  // What it continues is complete when the task before it has ended.
  let isBegun = task === undefined || findAnswers(task) === undefined || task.startedAt !== undefined;
  if (isBegun) yield* await begin();
  // It has its own answers, and pages of AI SDK 6 know no such chunk.
  const known = new Set(
    task && isAsking ? findAnswers(task)?.answers.map((one) => 'approvalId' in one && one.approvalId) : [],
  );
  for await (const seen of followTask<ReplyEvent>(store, ref, { signal })) {
    if (!isBegun) yield* await begin();
    isBegun = true;
    const chunks = await translate(chat, { ref, seen, translator });
    if (seen.type !== 'end' && continued?.isWhole === true) continue;
    yield* chunks.filter((chunk) => chunk.type !== 'tool-approval-response' || !known.has(chunk.approvalId));
    // A page sends answers only when the stream has ended. Its answer continues the message.
    const { awaited } = translator;
    if (awaited.length === 0 || !(await areOpen(store, ref, awaited))) continue;
    yield* translator.pause();
    return undefined;
  }
  return undefined;
}

/** What is taken back, the page gets again as the journal has it. */
async function translate(
  { store }: Chat,
  { ref, seen, translator }: { ref: TaskRef; seen: FollowEvent<ReplyEvent>; translator: UiTranslator },
): Promise<readonly UIMessageChunk[]> {
  if (seen.type === 'entry') return translator.translate(seen.event);
  if (seen.type === 'end') return translator.end(seen.task);
  const task = (await store.get(ref))!;
  const journal = await readJournal(store, task);
  return translator.takeBack(journal.map(({ event }) => event as unknown as ReplyEvent));
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
