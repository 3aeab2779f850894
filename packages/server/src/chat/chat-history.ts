import type { CancelReasonInit, Json } from '@whoa/core';
import { systemWorld } from '@whoa/core/embed';
import { isFinalStatus, type TaskRecord } from '@whoa/tasks';
import type { UIMessage, UIMessageChunk } from 'ai';
import { closeWaiting, findAnswers } from './answers.ts';
import type { ChatParts, ChatStop, ChatStopReceipt } from './chat-types.ts';
import { HISTORY_AGENT } from './history-work.ts';
import { chunksOf } from './ui/message-chunks.ts';

export interface ChatRef {
  readonly tenant: string;
  readonly chatId: string;
}

type Parts = Pick<ChatParts, 'store' | 'runner' | 'isReply' | 'isElsewhere'>;

/** Returns the id of the message that a task writes. */
export function messageIdOf(task: Pick<TaskRecord, 'id' | 'inputs'>): string {
  return findAnswers(task)?.messageId ?? task.id;
}

async function readHistory({ store, isReply }: Parts, { tenant, chatId }: ChatRef): Promise<readonly UIMessage[]> {
  const record = isReply ? await store.conversation({ tenant, conversation: chatId }) : undefined;
  return (record?.history ?? []) as unknown as readonly UIMessage[];
}

/** Finds a reply in the history of a chat. */
export async function findMessage(parts: Parts, chat: ChatRef, id: string): Promise<UIMessage | undefined> {
  return (await readHistory(parts, chat)).findLast((message) => message.id === id && message.role === 'assistant');
}

/** Returns what a reader needs before the journal of a task that continues a message. */
export async function readContinued(
  parts: Parts,
  task: TaskRecord,
): Promise<{ readonly chunks: readonly UIMessageChunk[]; readonly isWhole: boolean } | undefined> {
  const answers = findAnswers(task);
  if (answers === undefined) return undefined;
  const chat = { tenant: task.tenant, chatId: task.conversation! };
  const before = await findMessage(parts, chat, answers.messageId);
  // Once the task has ended, the message in the history contains what the task added.
  const isWhole = isFinalStatus((await parts.store.get(task))?.status ?? 'success');
  const message = isWhole ? await findMessage(parts, chat, answers.messageId) : before;
  return { chunks: message ? chunksOf(message) : [], isWhole };
}

/** Closes the calls of the last message that wait for a person or a page. No run exists that could. */
export async function stopWaiting(
  parts: Parts,
  { tenant, chatId, messageId }: ChatRef & Pick<ChatStop, 'messageId'>,
  reason: CancelReasonInit,
): Promise<ChatStopReceipt | undefined> {
  const { runner, isElsewhere } = parts;
  const history = await readHistory(parts, { tenant, chatId });
  const last = history.at(-1);
  if (last === undefined || (messageId !== undefined && last.id !== messageId)) return undefined;
  const { clock } = systemWorld;
  const why = { kind: 'user', ...reason, at: clock.wallNow?.() ?? clock.now() };
  if (closeWaiting(history, why, isElsewhere) === history) return undefined;
  const input = { close: last.id, why } as unknown as Json;
  await runner.run({ tenant, agent: HISTORY_AGENT, conversation: chatId, input }, { policy: 'queue' });
  const message = await findMessage(parts, { tenant, chatId }, last.id);
  return { answer: 'accepted', ...(message && { message }) };
}

/** Returns the key of a message that names no run, so that one which is sent twice is stored once. */
export async function keyOf({ store }: Parts, chat: ChatRef, { id }: UIMessage): Promise<string | undefined> {
  const [tenant, conversation, key] = [chat.tenant, chat.chatId, `message:${id}`];
  const known = await store.find({ tenant, conversation, key });
  if (known === undefined || !isFinalStatus(known.status)) return key;
  // One that was removed since is new.
  const record = await store.conversation({ tenant, conversation });
  return record?.history.some((said) => (said as { id?: string }).id === id) ? key : undefined;
}
