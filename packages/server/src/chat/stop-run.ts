import type { CancelReasonInit } from '@whoa/core';
import type { TaskRef } from '@whoa/tasks';
import { cancelBackground } from '@whoa/tasks/internal';
import type { UIMessage } from 'ai';
import type { Principal } from '../http/access/principal.ts';
import { findAnswers } from './answers.ts';
import { type ChatRef, getMessageId, isRun, keepMessage, stopWaiting, withWaited } from './chat-history.ts';
import { findActive, findContinuations, findRun, takeName } from './chat-runs.ts';
import type { Chat, ChatStop, ChatStopReceipt } from './chat-types.ts';
import { rollBack } from './roll-back.ts';
import { stopReply } from './waiting-reply.ts';

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
  const active = isNamed ? undefined : await findActive(chat, who, chatId);
  let task = isNamed ? await findRun(chat, who, stop) : active && (await chat.store.get(active));
  if (task === undefined && runId !== undefined) {
    if (await takeName(chat, { tenant, conversation: chatId, key: runId, reply: null }, reason))
      return { ...(await stopWaiting(chat, { chatId, messageId, who }, reason)), result: 'recorded' };
    // Its message has arrived in between.
    task = await findRun(chat, who, stop);
  }
  const ref = task && { tenant, id: task.id };
  const continued = task ? getMessageId(task) : messageId;
  const queued = continued === undefined ? [] : await findContinuations(chat, { tenant, chatId }, continued);
  for (const one of queued) if (one.id !== ref?.id) await chat.store.cancel(one, reason, { mode: 'now' });
  const isRead = runId !== undefined || Boolean(stop.rollback);
  const receipt = ref ? await stopReply(chat, { who, chatId, ref, isRead }, reason) : { result: 'idle' as const };
  for (const one of ref ? await findUnsaid(chat, ref, stop) : [])
    await keepMessage(chat, { who, chatId }, { message: one, regenerate: false, key: `kept:${ref!.id}:${one.id}` });
  if (stop.rollback) {
    const keepsEffects = stop.rollback === 'with-effects';
    return { ...receipt, ...(await rollBack(chat, { who, chatId, ref, keepsEffects }, reason)) };
  }
  const now = ref && (await chat.store.get(ref));
  const ended = receipt.result === 'too-late' || now?.startedAt === undefined || queued.length > 1 ? now : undefined;
  if (ref !== undefined && ended === undefined) return receipt;
  const waiting = { who, chatId, messageId: ended ? getMessageId(ended) : messageId };
  return { ...receipt, ...(await stopWaiting(chat, waiting, reason)) };
}

/** Returns the messages of a reply that was stopped before it had begun. They were acknowledged, so they stay in the chat. */
async function findUnsaid(
  { store, isReply }: Chat,
  ref: TaskRef,
  { rollback = false }: ChatStop,
): Promise<readonly UIMessage[]> {
  const task = await store.get(ref);
  if (!isReply || task?.status !== 'cancelled' || task.startedAt !== undefined || !isRun(task)) return [];
  const { inputs } = await withWaited(store, task);
  const said = findAnswers(task) === undefined ? inputs : [];
  return (rollback ? said.slice(0, -task.inputs.length) : said) as unknown as readonly UIMessage[];
}
