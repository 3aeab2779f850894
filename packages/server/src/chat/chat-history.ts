import type { AppContext, CancelReasonInit, Json, Message, Policy } from '@whoa/core';
import { createReason, systemWorld } from '@whoa/core/embed';
import {
  type CreateReceipt,
  isFinalStatus,
  type NewTask,
  StoreFullError,
  type TaskRecord,
  TaskRejectedError,
  type TaskStore,
  type TaskSummary,
} from '@whoa/tasks';
import type { UIMessage, UIMessageChunk } from 'ai';
import type { Principal } from '../http/access/principal.ts';
import { HttpError } from '../http/http-error.ts';
import { closeWaiting, findAnswers, isStopped } from './answers.ts';
import { findStarter, withAsked } from './app-history.ts';
import type { Chat, ChatStop, ChatStopReceipt } from './chat-types.ts';
import { HISTORY_AGENT, type HistoryChange, readAdded } from './history-work.ts';
import type { ReplacedCall } from './replaced-calls.ts';
import { withStopReports } from './stop-reports.ts';
import { type IsElsewhere, isCallPart } from './ui/call-parts.ts';
import { toChunks } from './ui/message-chunks.ts';
import { toUiMessages, toUserMessage } from './ui/ui-messages.ts';

/** The start of a run that only holds a name: the last moment there is. */
export const NEVER = 8.64e15;

/** Returns whether a task replies, or did. The others change the history, or only hold a name. */
export function isRun({ agent, notBefore }: TaskSummary): boolean {
  return agent !== HISTORY_AGENT && notBefore !== NEVER;
}

export interface ChatRef {
  readonly who: Principal;
  readonly chatId: string;
}

type Parts = Pick<Chat, 'store' | 'runner' | 'isReply' | 'isElsewhere' | 'history'>;

/** What a store takes as the input of a task. */
const MAX_INPUT_BYTES = 4 * 1024 * 1024;

/** Returns a message as the input of a task. Throws an `HttpError` if no store takes it. */
export function requireSize(message: object): Json {
  const bytes = Buffer.byteLength(JSON.stringify(message));
  if (bytes <= MAX_INPUT_BYTES) return message as Json;
  const why = `The message has ${bytes} bytes, and at most ${MAX_INPUT_BYTES} are stored; upload its files and send their URLs`;
  throw new HttpError(413, { code: 'message-too-large', message: why, bytes, maxBytes: MAX_INPUT_BYTES });
}

/** Returns the id of the message that a task writes. */
export function getMessageId(task: Pick<TaskRecord, 'id' | 'inputs'>): string {
  return findAnswers(task)?.messageId ?? task.id;
}

/** Returns the messages of a chat. Those of an agent are not messages of a page. */
export async function readHistory({ store, isReply, history }: Parts, chat: ChatRef): Promise<readonly UIMessage[]> {
  if (history !== undefined) return (await history.read({ chatId: chat.chatId, principal: chat.who })).messages;
  const ref = { tenant: chat.who.tenant, conversation: chat.chatId };
  const record = isReply ? await store.conversation(ref) : undefined;
  return (record?.history ?? []) as unknown as readonly UIMessage[];
}

/** Returns a chat as a page shows it when it is opened. The reply in progress is streamed. */
export async function readMessages(parts: Parts, chat: ChatRef): Promise<readonly UIMessage[]> {
  const { messages } = await readWhole(parts, chat);
  const shown = parts.isReply ? messages : toUiMessages(messages as unknown as Message[], chat.chatId);
  return withStopReports(shown, parts.store, { tenant: chat.who.tenant, conversation: chat.chatId });
}

/** Returns a chat with what is asked and has no reply yet. Messages of an agent are not those of a page. */
export async function readWhole(parts: Parts, chat: ChatRef): Promise<{ readonly messages: readonly UIMessage[] }> {
  const { store, isReply, history } = parts;
  const ref = { tenant: chat.who.tenant, conversation: chat.chatId };
  const record = await store.conversation(ref);
  const saved = (history ? await readHistory(parts, chat) : (record?.history ?? [])) as readonly UIMessage[];
  const alive = [record?.current, ...(record?.waiting ?? [])].filter((id) => id !== undefined);
  const all = await Promise.all(alive.map((id) => store.get({ tenant: ref.tenant, id })));
  const runs = all.filter((task) => task !== undefined && isRun(task)) as TaskRecord[];
  const tasks = isReply ? await Promise.all(runs.map((task) => withWaited(store, task))) : runs;
  const added = all.flatMap((task) => (task?.agent === HISTORY_AGENT ? readAdded(task) : []));
  // The reply in progress has closed what waited, and saves that at its end.
  const [first] = tasks;
  const isReplying = isReply && first !== undefined && findAnswers(first) === undefined;
  const kept = isReplying ? closeBefore(saved, first, parts.isElsewhere) : saved;
  const shown = tasks.reduce(withAsked, kept).filter(({ id }) => !tasks.some((task) => task.id === id));
  const known = new Set(shown.map(({ id }) => id));
  return { messages: [...shown, ...added.filter(({ id }) => !known.has(id))] };
}

/**
 * Returns the task of a reply with the messages of those that it replaced before they had begun. They were acknowledged, so
 * they stay in the chat, and this reply is to all of them.
 */
export async function withWaited(store: TaskStore, task: TaskRecord): Promise<TaskRecord> {
  const waited = isRun(task) && findAnswers(task) === undefined ? await readWaited(store, task) : [];
  return waited.length === 0 ? task : { ...task, inputs: [...waited, ...task.inputs] };
}

async function readWaited(store: TaskStore, { tenant, superseded = [] }: TaskRecord): Promise<readonly Json[]> {
  const replaced = await Promise.all(superseded.map((id) => store.get({ tenant, id })));
  // The last one is the one that was current: it came first.
  const inputs = [...replaced.slice(-1), ...replaced.slice(0, -1)].map(async (task): Promise<readonly Json[]> => {
    if (task === undefined || task.startedAt !== undefined || task.outcome?.reason?.kind !== 'superseded') return [];
    if (!isRun(task)) return task.agent === HISTORY_AGENT ? (readAdded(task) as unknown as readonly Json[]) : [];
    return findAnswers(task) === undefined ? [...(await readWaited(store, task)), ...task.inputs] : [];
  });
  return (await Promise.all(inputs)).flat();
}

/** Closes what waits before the message of a task, which may be saved already. */
function closeBefore(
  saved: readonly UIMessage[],
  { inputs }: TaskRecord,
  isElsewhere: IsElsewhere,
): readonly UIMessage[] {
  const own = new Set(inputs.map((input) => (input as { readonly id?: string }).id));
  const index = saved.findIndex(({ id }) => own.has(id));
  const end = index < 0 ? saved.length : index;
  return [...closeWaiting(saved.slice(0, end), { kind: 'superseded', at: 0 }, isElsewhere), ...saved.slice(end)];
}

/** Creates a task that changes the history of a chat. */
export function historyTask({ who, chatId }: ChatRef, input: object): NewTask {
  const context = { principal: who } as unknown as AppContext;
  // It is not a message.
  const about = { agent: HISTORY_AGENT, conversation: chatId, keepsQuestions: true };
  return { tenant: who.tenant, ...about, input: input as Json, context };
}

/** What a task that changed a history has left. */
export interface ChangedHistory {
  /** The calls of what was removed that may have had effects. */
  readonly replaced: readonly ReplacedCall[];
  /** Nothing was removed: more was said after the turn. */
  readonly isRefused?: boolean;
}

interface ChangeOptions {
  readonly policy: Policy;
  readonly key?: string | undefined;
}

/** Changes the history of a chat by a task, once for each key. Resolves with `undefined` if it was not changed; then a repeat tries again. */
async function changeHistory(
  { store, runner }: Parts,
  chat: ChatRef,
  { input, policy, key }: ChangeOptions & { readonly input: HistoryChange },
): Promise<ChangedHistory | undefined> {
  const { tenant } = chat.who;
  let once = key;
  const find = () => (once === undefined ? undefined : store.find({ tenant, conversation: chat.chatId, key: once }));
  for (let last = await find(); last && isFinalStatus(last.status) && !findChange(last); last = await find())
    once = `${key}:${last.id}`;
  const { id } = await runner.run({ ...historyTask(chat, input), ...(once && { key: once }) }, { policy });
  return findChange(await store.get({ tenant, id }));
}

function findChange(task: TaskRecord | undefined): ChangedHistory | undefined {
  const changed = task?.outcome?.result as (Partial<ChangedHistory> & { readonly done?: true }) | undefined;
  return changed?.done === true ? { replaced: [], ...changed } : undefined;
}

/** Finds a reply in the history of a chat. */
export async function findMessage(parts: Parts, chat: ChatRef, id: string): Promise<UIMessage | undefined> {
  return (await readHistory(parts, chat)).findLast((message) => message.id === id && message.role === 'assistant');
}

/** Finds the message that asks about a call, and ended its turn with it. */
export async function findAsking(parts: Parts, chat: ChatRef, approvalId: string): Promise<UIMessage | undefined> {
  const isAsked = (part: UIMessage['parts'][number]): boolean => isCallPart(part) && part.approval?.id === approvalId;
  return (await readHistory(parts, chat)).findLast((message) => message.parts.some(isAsked));
}

/** Returns what a reader needs before the journal of a task that continues a message. */
export async function readContinued(
  parts: Parts,
  task: TaskRecord,
): Promise<{ readonly chunks: readonly UIMessageChunk[]; readonly isWhole: boolean } | undefined> {
  const answers = findAnswers(task);
  if (answers === undefined) return undefined;
  const chat = { who: findStarter(task), chatId: task.conversation! };
  const before = await findMessage(parts, chat, answers.messageId);
  // Once the task has ended, the message in the history contains what the task added.
  const isWhole = isFinalStatus((await parts.store.get(task))?.status ?? 'success');
  const message = isWhole ? await findMessage(parts, chat, answers.messageId) : before;
  return { chunks: message ? toChunks(message) : [], isWhole };
}

/** Removes a message of the user, and everything after it. A reply in progress is replaced, unless the `policy` is another. */
export function cutHistory(
  parts: Parts,
  chat: ChatRef,
  { key, policy = 'replace', ...input }: Extract<HistoryChange, { from: string }> & Partial<ChangeOptions>,
): Promise<ChangedHistory | undefined> {
  return changeHistory(parts, chat, { input, policy, key });
}

/** Stores a message whose run was stopped before it arrived. It has no reply. */
export async function keepMessage(
  parts: Parts,
  chat: ChatRef,
  { message, regenerate, key }: { readonly message: UIMessage; readonly regenerate: boolean; readonly key: string },
): Promise<void> {
  const add = parts.isReply ? message : toUserMessage(message);
  // It waits for the reply in progress, and is shown until then.
  const { response } = await parts.runner.start(
    { ...historyTask(chat, { add, regenerate }), key },
    { policy: 'queue' },
  );
  response.catch(() => {});
}

/** Closes the calls of the last message that wait for a person or a page. No run exists that could. */
export async function stopWaiting(
  parts: Parts,
  { messageId, ...chat }: ChatRef & Pick<ChatStop, 'messageId'>,
  reason: CancelReasonInit,
): Promise<ChatStopReceipt | undefined> {
  const { isElsewhere } = parts;
  // A newer message closes them itself: this must not wait for the end of its reply.
  const history = parts.isReply ? (await readWhole(parts, chat)).messages : await readHistory(parts, chat);
  const last = history.at(-1);
  if (last === undefined || (messageId !== undefined && last.id !== messageId)) return undefined;
  const { clock } = systemWorld;
  const why = createReason({ ...reason, at: undefined }, clock.wallNow?.() ?? clock.now());
  if (closeWaiting(history, why, isElsewhere) === history)
    return messageId !== undefined && isStopped(last) ? { result: 'unchanged', message: last } : undefined;
  const closed = await changeHistory(parts, chat, { input: { close: last.id, why }, policy: 'queue' });
  const message = await findMessage(parts, chat, last.id);
  return { result: 'accepted', ...(message && { message }), ...(!closed && parts.history && { unsaved: true }) };
}

/** Returns the key of a message that names no run, so that one which is sent twice is stored once. */
export async function findKey(parts: Parts, chat: ChatRef, { id }: UIMessage): Promise<string | undefined> {
  const { store, history } = parts;
  const [tenant, conversation, key] = [chat.who.tenant, chat.chatId, `message:${id}`];
  const known = await store.find({ tenant, conversation, key });
  if (known === undefined || !isFinalStatus(known.status)) return key;
  // One that was removed since is new.
  const kept = history ? await readHistory(parts, chat) : (await store.conversation({ tenant, conversation }))?.history;
  return kept?.some((message) => (message as { id?: string }).id === id) ? key : undefined;
}

/** Throws if a task was not let in. */
export function requireCreated(receipt: CreateReceipt): Extract<CreateReceipt, { task: TaskRecord }> {
  if (receipt.result === 'created' || receipt.result === 'duplicate') return receipt;
  throw receipt.result === 'rejected' ? new TaskRejectedError() : new StoreFullError(receipt);
}

/** Returns the task of the reply whose name a task holds. */
export function findReplyId({ notBefore, inputs }: TaskRecord): string | undefined {
  return notBefore === NEVER ? ((inputs[0] as string | null) ?? undefined) : undefined;
}
