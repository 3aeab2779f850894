import type { CancelReasonInit } from '@whoa/core';
import {
  type ConversationRecord,
  type ConversationRef,
  isFinalStatus,
  type TaskRecord,
  type TaskRef,
  type TaskStore,
} from '@whoa/tasks';
import type { Principal } from '../http/access/principal.ts';
import { findAnswers } from './answers.ts';
import { findReplyId, isRun, NEVER, requireCreated } from './chat-history.ts';
import type { Chat, ChatStop } from './chat-types.ts';
import { HISTORY_AGENT } from './history-work.ts';

/** The page's name for a run, as the store finds its task, and the task that has the name from now on. */
type RunName = ConversationRef & { readonly key: string; readonly reply: string | null };

interface ChatName {
  readonly tenant: string;
  readonly chatId: string;
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

/** Returns the reply that a page reads: the one in progress, or the newest that waits for the end of a stopped one. */
export async function findShown({ store }: Chat, { tenant, chatId }: ChatName): Promise<TaskRef | undefined> {
  const record = await store.conversation({ tenant, conversation: chatId });
  const task = chooseShown(await readLive(store, { tenant, ...record }));
  return task && { tenant, id: task.id };
}

export function chooseShown(live: readonly TaskRecord[]): TaskRecord | undefined {
  const runs = live.filter(isRun);
  return runs[0]?.status === 'cancelling' ? runs.at(-1) : runs[0];
}

/** Returns the tasks of a conversation that have not ended, in order. */
export async function readLive(
  store: TaskStore,
  { tenant, current, waiting = [] }: { readonly tenant: string } & Partial<ConversationRecord>,
): Promise<readonly TaskRecord[]> {
  const ids = [current, ...waiting].filter((id) => id !== undefined);
  const tasks = await Promise.all(ids.map((id) => store.get({ tenant, id })));
  return tasks.filter((task) => task !== undefined && !isFinalStatus(task.status)) as TaskRecord[];
}

/** Returns the tasks that continue a message: the one in progress, and those after it. */
export async function findContinuations(
  { store }: Chat,
  { tenant, chatId }: ChatName,
  messageId: string,
): Promise<readonly TaskRecord[]> {
  const record = await store.conversation({ tenant, conversation: chatId });
  return (await readLive(store, { tenant, ...record })).filter((task) => findAnswers(task)?.messageId === messageId);
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
  const going = found || id === undefined ? [] : await findContinuations(chat, { tenant, chatId }, id);
  const task = going[0] ?? (id === undefined ? found : await store.get({ tenant, id }));
  return task?.conversation === chatId ? task : undefined;
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

/**
 * Takes the name of a run: the run is created and cancelled before it can start, so a message that arrives later finds it
 * ended. Returns whether the name was free.
 */
export async function takeName(
  { store, agent }: Chat,
  { reply, ...name }: RunName,
  reason: CancelReasonInit,
): Promise<boolean> {
  const run = { ...name, agent, input: reply, notBefore: NEVER };
  const { result, task } = requireCreated(await store.create(run, { policy: 'queue' }));
  if (result === 'created') await store.cancel(task, reason, { mode: 'now' });
  return result === 'created';
}
